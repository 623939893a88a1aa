# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2154 # tag, nodes: devcluster
#
# Makes the cluster's namespaces: one network namespace per node and one for the
# controller, which also has the bridge. Nothing is added to the machine's own
# network namespace. Reads $tag, $nodes.

# Path of the network namespace of $1 ("head", "n1").
net_path()
{
    echo "/run/netns/$tag-$1"
}

# Can we make namespaces? Tries what net_up and node_start do.
net_possible()
{
    local probe=$tag-probe rc=0

    if [ "$EUID" -ne 0 ] || ! command -v ip nsenter unshare >/dev/null; then
        return 1
    fi
    ip netns add "$probe" 2>/dev/null || return 1
    { ip -n "$probe" link add br0 type bridge &&
        ip -n "$probe" link add v1 type veth peer name v2 &&
        unshare --uts --mount sh -c 'hostname x && mount -t tmpfs x /dev/shm'
    } >/dev/null 2>&1 || rc=1
    ip netns del "$probe"
    return "$rc"
}

net_up()
{
    local i head=$tag-head

    ip netns add "$head"
    ip -n "$head" link set lo up
    ip -n "$head" link add br0 type bridge
    ip -n "$head" addr add "$(conf_address 0)/24" dev br0
    ip -n "$head" link set br0 up
    for ((i = 1; i <= nodes; i++)); do
        ip netns add "$tag-n$i"
        ip -n "$head" link add "v$i" type veth \
            peer name eth0 netns "$tag-n$i"
        ip -n "$head" link set "v$i" master br0 up
        ip -n "$tag-n$i" link set lo up
        ip -n "$tag-n$i" addr add "$(conf_address "$i")/24" dev eth0
        ip -n "$tag-n$i" link set eth0 up
        ip -n "$tag-n$i" route add default via "$(conf_address 0)"
    done
}

# Names of all existing namespaces of this cluster, also after a crash.
net_names()
{
    ip netns list 2>/dev/null | awk -v tag="$tag-" \
        'index($1, tag) == 1 {print $1}'
}

# Ids of all processes in the namespaces of this cluster.
net_processes()
{
    local name

    for name in $(net_names); do
        ip netns pids "$name"
    done
}

# Remove the namespaces; their interfaces are removed with them.
net_down()
{
    local name

    for name in $(net_names); do
        ip netns del "$name"
    done
}
