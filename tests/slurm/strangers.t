#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Who can connect to the ranks of a job: on one node nobody; on several nodes
# only the ranks themselves. Also the message of the survivors when a stranger
# has ended a rank, if the site has disabled the gate.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data

# launch SRUN-ARG...: start ranks that train until they are told to end. Their
# process ids are in pid.RANK.
launch()
{
    run_file plain
    # shellcheck disable=SC2016 # expanded by the task
    start srun --mpi=pmix -K0 "$@" bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec "$@"' rank "$train" \
        --set train.epochs=100000 plain.yaml
    wait_until 60 metrics_reach 3
}

metrics_reach()
{
    [ "$(cat run/metrics.jsonl 2>/dev/null | wc -l)" -ge "$1" ]
}

# Print ADDRESS:PORT of each socket on which rank $1 listens, one per line,
# except the socket of Slurm's PMIx plugin, which tasks inherit from slurmstepd.
listening()
{
    nsenter --net="/proc/$(cat "pid.$1")/ns/net" ss -Hltnp |
        awk -v pid="pid=$(cat "pid.$1")," 'index($0, pid) && !/slurmstepd/ {print $4}'
}

# Does a process at $1 (ADDRESS:PORT) accept a connection from here, the
# controller, which is on the nodes' network? Sends the 13 bytes at which UCX
# ends its process: a magic number and the header of a message that is too long.
attack()
{
    # shellcheck disable=SC2016 # expanded by the inner shell
    timeout 3 bash -c 'exec 3<>"/dev/tcp/$1/$2" && printf \
        "\x78\x56\x34\x12\xbe\xba\xfe\xca\x00\xff\xff\xff\x7f" >&3 &&
        cat <&3 >/dev/null' attack "${1%:*}" "${1##*:}" 2>/dev/null
    [ $? -eq 0 ]
}

# The run goes on, and ends when it is told to.
goes_on()
{
    wait_until 60 metrics_reach $(($(cat run/metrics.jsonl | wc -l) + 20))
    kill -TERM "$(cat pid.0)"
    finish 75
}

one_node()
{
    launch -N1 -n2
    expect_equal "sockets of rank 0" "$(listening 0)" ""
    expect_equal "sockets of rank 1" "$(listening 1)" ""
    goes_on
}

two_nodes()
{
    local rank socket

    launch -N2 -n4 --ntasks-per-node=2
    for rank in 0 1 2 3; do
        [ -n "$(listening $rank)" ] || fail "rank $rank listens to nobody"
        for socket in $(listening $rank); do
            # Neither 0.0.0.0 nor 127.0.0.1.
            expect_equal "network of $socket" "${socket%.*:*}" \
                "$(node_network)"
            ! attack "$socket" || fail "a stranger reaches $socket"
        done
    done
    goes_on
}

# The first three numbers of the nodes' addresses, such as 10.1.2.
node_network()
{
    local address

    address=$(scontrol show node n1 | sed -n 's/.*NodeAddr=\([0-9.]*\).*/\1/p')
    echo "${address%.*}"
}

open_gate()
{
    export CDDP_NET_GATE=off
    launch -N2 -n4 --ntasks-per-node=2
    attack "$(listening 3 | head -n 1)" || true # closed by the death
    finish nonzero
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" 3
    expect_text run/exit.json 'stranger on the network, see Security in ADMIN'
    expect_lines bg.err '^cddp-train: rank 3 ends: UCX ended it' 1
    expect_lines bg.err '^cddp-train: rank 3 on n2 .*see Security in ADMIN' 1
}

test_case "nothing of a job on one node listens" one_node
test_case "a job on two nodes listens to its own nodes" two_nodes
test_case "who falls to a stranger is named as that" open_gate
test_done
