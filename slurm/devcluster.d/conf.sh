# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2154 # dir, mode, nodes: devcluster
#
# Writes the configuration of the private Slurm: slurm.conf and cgroup.conf in
# the cluster's directory. Reads $dir, $mode, $nodes.

# Addresses inside the namespaces. The network is not connected to the
# machine's own, so any private range will do.
conf_net=10.213.0
# CPUs that each node claims to have: more than there are, so that 16 ranks fit
# on two nodes.
conf_cpus=8

# Address of node number $1; 0: the controller.
conf_address()
{
    if [ "$mode" = namespaces ]; then
        echo "$conf_net.$(($1 + 1))"
    else
        echo 127.0.0.1
    fi
}

# A TCP port on which nobody listens; host mode only. It differs for each $1.
conf_free_port()
{
    local port=$((20000 + (RANDOM % 100) * 100 + $1)) used

    used=$(ss -Hltn | awk '{print $4}')
    while grep -q ":$port\$" <<<"$used"; do
        port=$((port + 100))
    done
    echo "$port"
}

conf_nodes()
{
    local i port

    for ((i = 1; i <= nodes; i++)); do
        printf 'NodeName=n%d NodeAddr=%s CPUs=%d RealMemory=%d' \
            "$i" "$(conf_address "$i")" "$conf_cpus" "$1"
        if [ "$mode" = namespaces ]; then
            printf ' NodeHostname=n%d Port=6818\n' "$i"
        else
            port=$(conf_free_port "$i")
            printf ' NodeHostname=%s Port=%d\n' "$(uname -n)" "$port"
        fi
    done
}

conf_write()
{
    local user memory port=6817 host=head

    user=$(id -un)
    memory=$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
    if [ "$mode" = host ]; then
        port=$(conf_free_port 0)
        host=$(uname -n)
    fi
    cat >"$dir/slurm.conf" <<END
ClusterName=devcluster
SlurmctldHost=$host($(conf_address 0))
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
# cred_expire: a requeued job waits for the old credential to expire (121 s).
AuthInfo=socket=$dir/munge/socket,cred_expire=10
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/state/slurmctld.pid
SlurmdPidFile=$dir/spool-%n/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
# A directory per node: PMIx keeps its sockets there and must find it new.
TmpFS=$dir/tmp-%n
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Nodes may claim more CPUs than the machine has.
SlurmdParameters=config_overrides
ReturnToService=2
# Start what is submitted or requeued within seconds, not half minutes.
SchedulerParameters=sched_interval=2,bf_interval=2
MessageTimeout=30
# Ten seconds from SIGTERM to SIGKILL (default 30): tests wait less.
KillWait=10
JobRequeue=1
# Tests of preemption make partitions with different PriorityTier.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
# "checkpointed, requeue me"
RequeueExit=75
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
$(conf_nodes "$memory")
PartitionName=dev Nodes=ALL Default=YES MaxTime=INFINITE State=UP PreemptMode=OFF
END
    # cgroups are not used here. Version 1 does nothing unless asked, whereas
    # version 2, which Slurm would detect, needs systemd or its own cgroup to
    # start.
    echo 'CgroupPlugin=cgroup/v1' >"$dir/cgroup.conf"
}
