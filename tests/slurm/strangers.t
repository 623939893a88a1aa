#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Who can connect to the ranks of a job: on one node nobody; on several nodes
# only the ranks themselves, even if the job is of an ordinary account. A crowd that
# tries to connect changes no bit and delays no step. If the site has disabled the gate
# and a stranger has ended a rank, the other ranks say so.
# CDDP_STRANGERS_SECONDS (5): how long the crowd tries.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
umask 022 # for the ordinary account
small_data

# launch SRUN-ARG...: start ranks that train until they are told to end. Their
# process ids are in pid.RANK.
launch()
{
    run_file plain
    # shellcheck disable=SC2016 # expanded by the task
    start "${as[@]}" srun --mpi=pmix -K0 "$@" bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec "$@"' rank "$train" \
        --set train.epochs=100000 plain.yaml
    wait_until 60 metrics_reach 3
}

metrics_reach()
{
    [ "$(cat run/metrics.jsonl 2>/dev/null | wc -l)" -ge "$1" ]
}

# Print each ADDRESS:PORT at which rank $1 listens, one per line, except the
# socket of Slurm's PMIx plugin, which tasks inherit from slurmstepd.
listening()
{
    sockets_of "$1" | awk '!/slurmstepd/ {print $4}' | sort -u
}

# The socket of the plugin, which is open to the network of the nodes.
listening_plugin()
{
    local address

    address=$(nsenter --net="/proc/$(cat "pid.$1")/ns/net" ip -4 -o address |
        awk -v net="$(node_network)." 'index($4, net) == 1 {sub("/.*", "", $4); print $4}')
    sockets_of "$1" | awk '/slurmstepd/ {print $4}' |
        sed "s/^0\.0\.0\.0:/$address:/"
}

# Print the lines of ss for all sockets on which rank $1 listens.
sockets_of()
{
    nsenter --net="/proc/$(cat "pid.$1")/ns/net" ss -Hltnp |
        grep -F "pid=$(cat "pid.$1"),"
}

# crowd SECONDS COUNT ADDRESS:PORT...: so many strangers at a time try for so long,
# from here, the controller, which is on the nodes' network (crowd.py). The sockets
# that accepted a connection are in ./accepted.
crowd()
{
    python3 "$SOURCE/tests/slurm/crowd.py" "$@" >crowd ||
        fail "the crowd could not connect"
    note "strangers at $(($# - 2)) sockets for $1 s: $(head -n 1 crowd)"
    tail -n +2 crowd >accepted
}

# The run makes 20 more steps.
advances()
{
    wait_until 60 metrics_reach $(($(cat run/metrics.jsonl | wc -l) + 20))
}

# The run goes on, and ends when it is told to.
goes_on()
{
    advances
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

# Set the arrays sockets, those of all four ranks, and plugin, those of Slurm.
all_listening()
{
    local rank socket own

    sockets=() plugin=()
    for rank in 0 1 2 3; do
        mapfile -t own < <(listening "$rank")
        [ ${#own[@]} -gt 0 ] || fail "rank $rank listens to nobody"
        for socket in "${own[@]}"; do
            # Neither 0.0.0.0 nor 127.0.0.1.
            expect_equal "network of $socket" "${socket%.*:*}" \
                "$(node_network)"
        done
        sockets+=("${own[@]}")
        mapfile -t own < <(listening_plugin "$rank")
        plugin+=("${own[@]}")
    done
}

# Print the longest time between two rows from row $1 of the metrics on, in
# milliseconds.
longest_ms()
{
    sed -nE "$1,\$s/.*\"time\": \"[^T]*T(.*):(.*):(.*)Z\".*/\1 \2 \3/p" run/metrics.jsonl |
        awk '{now = ($1 * 60 + $2) * 60 + $3
              gap = NR > 1 ? now - last : 0
              if (gap < 0) gap += 86400 # midnight
              if (gap > most) most = gap
              last = now}
             END {printf "%d\n", 1000 * most}'
}

# observe DIR COMMAND...: train in ./DIR, on two nodes, while the function COMMAND
# looks on. The longest step meanwhile is $longest.
observe()
{
    local from

    launch -N2 -n4 --ntasks-per-node=2
    from=$(wc -l <run/metrics.jsonl)
    "${@:2}"
    advances
    longest=$(longest_ms "$from")
    goes_on
    rm -rf "$1"
    mv run "$1"
    losses "$1/metrics.jsonl" >"$1.losses"
    rm pid.*
}

# They also come to the plugin, which does let them in.
strangers_come()
{
    local sockets plugin socket

    all_listening
    crowd "$seconds" 1000 "${sockets[@]}" "${plugin[@]}"
    for socket in "${sockets[@]}"; do
        expect_no_text accepted "^${socket//./\\.}\$"
    done
}

# Bits are compared in every round. A busy machine, too, makes a step long, but
# hardly in three rounds, and hardly only while the crowd is there.
two_nodes()
{
    local seconds=${CDDP_STRANGERS_SECONDS:-5} round longest quiet common

    need python3 -c 0 -- "python3"
    account_home
    # The account may not be allowed to enter the build directory.
    cp "$train" .
    train=$PWD/cddp-train
    for round in 1 2 3; do
        observe quiet sleep "$seconds" # time itself is what is compared
        quiet=$longest
        observe crowded strangers_come
        common=$(wc -l <quiet.losses)
        [ "$common" -lt "$(wc -l <crowded.losses)" ] ||
            common=$(wc -l <crowded.losses)
        cmp <(head -n "$common" quiet.losses) \
            <(head -n "$common" crowded.losses) || fail "other bits"
        note "round $round: $common equal losses; the longest step took" \
            "$longest ms with strangers, $quiet ms without"
        [ "$longest" -gt $((quiet + 1000)) ] || return 0
    done
    fail "strangers delay a step"
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
    # The first one sends what ends UCX.
    crowd 1 1 "$(listening 3 | head -n 1)"
    expect_lines accepted : 1
    finish nonzero
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" 3
    expect_text run/exit.json 'stranger on the network, see Security in ADMIN'
    expect_lines bg.err '^cddp-train: rank 3 ends: UCX ended it' 1
    expect_lines bg.err '^cddp-train: rank 3 on n2 .*see Security in ADMIN' 1
}

test_case "nothing of a job on one node listens" one_node
test_case "a job on two nodes listens to its own nodes, not to a crowd" two_nodes
test_case "who falls to a stranger is named as that" open_gate
test_done
