# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2154 # dir, mode, nodes: devcluster
#
# Start, readiness and stop of the daemons. Each runs in the foreground mode of
# its program, detached from us; its id is in $dir/pid/NAME. Reads $dir, $mode,
# $nodes.

# Seconds until all nodes must be idle. Polled every 0.2 s: Slurm offers no
# event for "node registered".
daemon_ready_limit=60

# Run "${@:2}" detached as daemon $1. It must keep its process id (exec only).
# All descriptors of ours are closed, lest somebody waits for their end.
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

# Is daemon $1 there? Its id may have been given to somebody else meanwhile, so
# look for the SLURM_CONF that we started it with.
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
    # munged wants key and socket in places that only its user can change.
    mkdir -m 755 "$dir/munge"
    (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
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

# 'ip netns exec' would remount /sys, and slurmd dies without its cgroups:
# nsenter leaves it alone.
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

hosts_write()
{
    local i

    echo "127.0.0.1 localhost" >"$dir/hosts"
    echo "$(conf_address 0) head" >>"$dir/hosts"
    for ((i = 1; i <= nodes; i++)); do
        echo "$(conf_address "$i") n$i" >>"$dir/hosts"
    done
}

# Run a Slurm command on the controller's side.
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

# Wait until all nodes are idle, or a daemon has died, or the limit is over.
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
    # A start that fails or is interrupted cleans up behind itself.
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

# Ids of all other processes of this cluster. Daemons by their recorded ids;
# what they left running (slurmstepd, tasks) by namespace, or, in host mode, by
# the SLURM_CONF that it carries.
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

# Set the array 'left' to those that still run. (The list's own makers are in
# it when we run inside the namespace; they have ended by then.)
cluster_left()
{
    local pid

    left=()
    for pid in $(cluster_processes); do
        [ ! -d "/proc/$pid" ] || left+=("$pid")
    done
}

# Send $1 until none is left; at most $2 tenths of a second. Sent again each
# time, since a slurmd may fork between the look and the signal.
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
    # retry for long: one second for SIGTERM is enough.
    cluster_kill TERM 10 || cluster_kill KILL 100 ||
        note "processes survived SIGKILL: ${left[*]}"
    [ "$mode" = host ] || net_down
    rm -rf -- "$dir/pid" "$dir/log" "$dir/state" "$dir/munge" "$dir"/spool-* \
        "$dir"/tmp-* "$dir/mode"
}
