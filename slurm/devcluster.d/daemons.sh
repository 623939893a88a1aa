# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2154 # dir, mode, nodes: devcluster
#
# Starts the daemons, waits until they are ready, and stops them. Each daemon
# runs in its foreground mode, detached from this script; its process id is in
# $dir/pid/NAME. Reads $dir, $mode, $nodes.

# Seconds after which all nodes must be idle. Polled every 0.2 s, since Slurm
# has no event for "node registered".
daemon_ready_limit=60

# Run "${@:2}" detached as daemon $1. It must keep its process id (exec only).
# It does not inherit our file descriptors, so nobody waits for it to close
# them.
daemon_spawn()
{
    local name=$1

    shift
    (
        exec </dev/null >>"$dir/log/$name.out" 2>&1
        exec 9>&-
        cd /
        exec env -u TMPDIR SLURM_CONF="$dir/slurm.conf" setsid "$@"
    ) &
    echo $! >"$dir/pid/$name"
}

# Is daemon $1 running? Its process id may belong to another process by now, so
# look for the SLURM_CONF with which we started it.
daemon_alive()
{
    local pid

    { read -r pid <"$dir/pid/$1"; } 2>/dev/null &&
        grep -qsxzF "SLURM_CONF=$dir/slurm.conf" "/proc/$pid/environ"
}

daemon_names()
{
    local i

    echo munged slurmctld
    for ((i = 1; i <= nodes; i++)); do
        echo "slurmd-n$i"
    done
}

daemons_print()
{
    local name state

    for name in $(daemon_names); do
        state=stopped
        daemon_alive "$name" && state="pid $(cat "$dir/pid/$name")"
        printf '%-12s %s\n' "$name" "$state"
    done
}

munge_start()
{
    # munged demands that only its user can change the directories of key and
    # socket.
    if mkdir -m 755 "$dir/munge" 2>/dev/null; then
        (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
    fi
    daemon_spawn munged munged --foreground \
        --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
        --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed" \
        --log-file="$dir/log/munged.log"
}

controller_start()
{
    local enter=()

    if [ "$mode" = namespaces ]; then
        enter=(nsenter "--net=$(net_path head)" unshare --uts
            sh -c 'hostname head && exec "$@"' sh)
    fi
    daemon_spawn slurmctld "${enter[@]}" slurmctld -D -i
}

# Uses nsenter, as 'ip netns exec' would remount /sys, and slurmd would die
# without the cgroups there.
node_start()
{
    local name=n$1 enter=()

    mkdir -p "$dir/spool-$name" "$dir/tmp-$name"
    chmod 1777 "$dir/tmp-$name"
    if [ "$mode" = namespaces ]; then
        # shellcheck disable=SC2016 # for the inner shell
        enter=(nsenter "--net=$(net_path "$name")" unshare --uts --mount
            sh -c 'hostname "$1" && mount -t tmpfs -o mode=1777 none /dev/shm &&
                   mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'
            sh "$name" "$dir/hosts")
    fi
    daemon_spawn "slurmd-$name" "${enter[@]}" slurmd -D -N "$name"
}

# Kill daemon $1, and wait until it is gone. The controller gets SIGTERM, so
# that it saves its state first. Otherwise it saves its state only every few
# seconds, and would not know the newest jobs when it is started again.
daemon_kill()
{
    local pid signal=KILL end=$((SECONDS + 20))

    daemon_alive "$1" || return 0
    pid=$(cat "$dir/pid/$1")
    [ "$1" != slurmctld ] || signal=TERM
    kill -"$signal" "$pid"
    while daemon_alive "$1"; do
        [ "$SECONDS" -lt "$end" ] || kill -KILL "$pid"
        sleep 0.05
    done
}

# Start daemon $1 of a cluster that is up.
daemon_start()
{
    case $1 in
    munged) munge_start ;;
    slurmctld) controller_start ;;
    slurmd-n*) node_start "${1#slurmd-n}" ;;
    esac
}

hosts_write()
{
    local i

    echo "127.0.0.1 localhost" >"$dir/hosts"
    echo "$(conf_address 0) head" >>"$dir/hosts"
    for ((i = 1; i <= nodes; i++)); do
        echo "$(conf_address "$i") n$i" >>"$dir/hosts"
    done
}

# Run a Slurm command in the namespace of the controller.
slurm_run()
{
    if [ "$mode" = namespaces ]; then
        SLURM_CONF=$dir/slurm.conf nsenter "--net=$(net_path head)" "$@"
    else
        SLURM_CONF=$dir/slurm.conf "$@"
    fi
}

nodes_idle()
{
    slurm_run sinfo -h -N -o %t 2>/dev/null | grep -c '^idle$' || true
}

# Wait until all nodes are idle, a daemon has died, or the time limit has
# passed.
cluster_wait()
{
    local end=$((SECONDS + daemon_ready_limit)) name

    while [ "$(nodes_idle)" != "$nodes" ]; do
        for name in $(daemon_names); do
            daemon_alive "$name" || return 1
        done
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}

cluster_alive()
{
    local name

    for name in $(daemon_names); do
        daemon_alive "$name" || return 1
    done
    slurm_run scontrol ping 2>/dev/null | grep -q ' UP'
}

cluster_explain()
{
    local name

    for name in $(daemon_names); do
        daemon_alive "$name" || echo "devcluster: $name ended; its last words:"
        tail -n 5 "$dir/log/$name.out" "$dir/log/$name.log" 2>/dev/null || true
    done
} >&2

cluster_start()
{
    local i

    echo "$mode $nodes" >"$dir/mode"
    mkdir -p "$dir/pid" "$dir/log" "$dir/state"
    conf_write
    hosts_write
    # If the start fails or is interrupted, stop the cluster and remove its
    # directory.
    trap 'cluster_stop; rm -rf -- "$dir"' EXIT
    [ "$mode" = host ] || net_up
    munge_start
    controller_start
    for ((i = 1; i <= nodes; i++)); do
        node_start "$i"
    done
    if ! cluster_wait; then
        cluster_explain
        die "the cluster was not ready after $SECONDS s"
    fi
    trap - EXIT
}

# Ids of this process and its ancestors: 'down' may be called from below 'exec'.
own_processes()
{
    local pid=$$

    while [ "$pid" -gt 1 ]; do
        echo "$pid"
        pid=$(awk '/^PPid/ {print $2}' "/proc/$pid/status")
    done
}

# Ids of all other processes of this cluster. Daemons are found by their
# recorded ids. Processes that they left running (slurmstepd, tasks) are found
# by namespace or, in host mode, by the SLURM_CONF in their environment.
cluster_processes()
{
    local name

    {
        for name in $(daemon_names); do
            daemon_alive "$name" && cat "$dir/pid/$name"
        done
        if [ "$mode" = namespaces ]; then
            net_processes
        else
            grep -lsxzF "SLURM_CONF=$dir/slurm.conf" /proc/[0-9]*/environ |
                cut -d/ -f3
        fi
    } | sort -u | grep -vxF "$(own_processes)" || true
}

# Set the array 'left' to the ids of cluster processes that still run. (If we
# run inside the namespace, cluster_processes also lists the processes of its
# own pipeline; these have ended by now.)
cluster_left()
{
    local pid

    left=()
    for pid in $(cluster_processes); do
        [ ! -d "/proc/$pid" ] || left+=("$pid")
    done
}

# Send signal $1 to all processes of the cluster until none is left, for at most
# $2 tenths of a second. The signal is sent again each time, since a slurmd may
# fork between listing and sending.
cluster_kill()
{
    local tenths=$2

    cluster_left
    while [ ${#left[@]} -gt 0 ] && [ "$tenths" -gt 0 ]; do
        kill "-$1" "${left[@]}" 2>/dev/null || true
        sleep 0.1
        tenths=$((tenths - 1))
        cluster_left
    done
    [ ${#left[@]} -eq 0 ]
}

cluster_stop()
{
    local left=()

    [ -n "$mode" ] || return 0
    # Nothing needs to be saved, and a slurmstepd without its controller would
    # retry for a long time, so one second for SIGTERM is enough.
    cluster_kill TERM 10 || cluster_kill KILL 100 ||
        note "processes survived SIGKILL: ${left[*]}"
    [ "$mode" = host ] || net_down
    rm -rf -- "$dir/pid" "$dir/log" "$dir/state" "$dir/munge" "$dir"/spool-* \
        "$dir"/tmp-* "$dir/mode"
}
