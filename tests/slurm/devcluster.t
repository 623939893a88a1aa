#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# slurm/devcluster itself: a second cluster beside the one that runs this test.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

devcluster=$SOURCE/slurm/devcluster
own_dir=$(mktemp -du "${TMPDIR:-/tmp}/cddp-devcluster-test.XXXXXX")
export CDDP_DEVCLUSTER_DIR=$own_dir
trap '"$devcluster" down' EXIT

need_namespaces()
{
    need unshare --net --uts --mount true -- "the right to make namespaces"
}

# Processes, namespaces and files of the second cluster.
nothing_left()
{
    local left

    left=$(grep -lsxzF "SLURM_CONF=$own_dir/slurm.conf" \
        /proc/[0-9]*/environ) || true
    expect_equal "processes left" "$left" ""
    left=$(ip netns list 2>/dev/null | grep -F "$(tag)" || true)
    expect_equal "namespaces left" "$left" ""
    [ ! -e "$own_dir" ] || fail "$own_dir is left"
}

tag()
{
    echo "cddp-$(printf '%s' "$own_dir" | cksum | cut -d' ' -f1)"
}

nodes_are_apart()
{
    need_namespaces
    run 0 "$devcluster" up --nodes 3
    # shellcheck disable=SC2016 # for the shell on the node
    run 0 "$devcluster" exec srun -N3 -n3 sh -c \
        'touch /dev/shm/$SLURM_PROCID; uname -n; ls /dev/shm | wc -l
         ip -4 -o addr show eth0'
    expect_lines out '^n[123]$' 3
    expect_lines out '^1$' 3
    expect_equal addresses "$(grep -o 'inet [^ ]*' out | sort -u | wc -l)" 3
}

talk_over_tcp()
{
    need_namespaces
    need command -v ucx_info -- "ucx_info (ucx-utils)"
    run 0 "$devcluster" up
    run 0 "$devcluster" exec srun -N1 -n1 ucx_info -d
    expect_text out 'Transport: tcp'
    expect_text out 'Device: eth0'
}

up_twice()
{
    run 0 "$devcluster" up
    run 0 "$devcluster" exec sbatch --parsable -N1 --wrap "sleep 60"
    run 0 "$devcluster" up
    expect_text err 'is up: [0-9] nodes'
    run 0 "$devcluster" exec squeue -h
    expect_lines out . 1
    run 1 "$devcluster" up --nodes 7
    expect_text err 'is up with [0-9] nodes'
    run 0 "$devcluster" status
    expect_text out '^up: '
    run 7 "$devcluster" exec sh -c 'exit 7'
}

# Taken down while a job runs, and a second time.
down()
{
    run 0 "$devcluster" up
    run 0 "$devcluster" exec sbatch --parsable -N1 -o "$WORK/job" --wrap \
        "echo here; srun sleep 60"
    wait_text 30 job here
    run 0 "$devcluster" down
    nothing_left
    run 0 "$devcluster" down
    run 3 "$devcluster" status
    run 1 "$devcluster" exec true
    expect_text err 'is not up'
}

# kill returns before the process has ended, which may take a while on a busy
# machine.
is_gone()
{
    ! grep -qs . "/proc/$1/environ"
}

repair()
{
    local controller

    run 0 "$devcluster" up
    controller=$(cat "$own_dir/pid/slurmctld")
    kill -9 "$controller"
    wait_until 30 is_gone "$controller"
    run 3 "$devcluster" status
    expect_text out '^broken'
    run 0 "$devcluster" up
    run 0 "$devcluster" exec srun -N2 -n2 true
    run 0 "$devcluster" down
    nothing_left
}

one_host()
{
    run 0 "$devcluster" up --no-namespaces
    run 0 "$devcluster" exec srun -N2 -n4 --mpi=pmix \
        "$BUILD/tests/slurm/boot_probe" exchange
    expect_lines out "^rank . of 4 on $(uname -n) by pmix$" 4
    run 0 "$devcluster" status
    expect_text out '^up: 2 nodes .host.'
    run 0 "$devcluster" down
    nothing_left
}

not_ours()
{
    mkdir "$own_dir"
    touch "$own_dir/precious"
    run 1 "$devcluster" up
    expect_text err 'is not empty and no devcluster'
    run 1 "$devcluster" down
    expect_file "$own_dir/precious"
    rm -r "$own_dir"
}

munge_cannot_reach_it()
{
    mkdir -m 700 "$WORK/closed"
    run 1 env CDDP_DEVCLUSTER_DIR="$WORK/closed/cluster" "$devcluster" up
    expect_text err "$WORK/closed has mode 700.*chmod o\+x"
    [ ! -e "$WORK/closed/cluster" ] || fail "the cluster directory was made"
}

usage()
{
    run 64 "$devcluster"
    run 0 "$devcluster" --help
    run 1 "$devcluster" up --nodes 0
    run 1 "$devcluster" up --nodes many
    run 1 "$devcluster" up --wrong
    expect_text err "unknown option '--wrong'"
    [ ! -e "$own_dir" ] || fail "$own_dir was made"
}

test_case "wrong words" usage
test_case "a directory of somebody else is left alone" not_ours
test_case "a directory that munge cannot reach" munge_cannot_reach_it
test_case "nodes have own names, addresses and /dev/shm" nodes_are_apart
"$devcluster" down
test_case "UCX finds TCP between them" talk_over_tcp
test_case "up twice is harmless" up_twice
test_case "down leaves nothing behind" down
test_case "up mends a broken cluster" repair
test_case "without namespaces, several slurmd on one host" one_host
test_done
