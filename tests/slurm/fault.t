#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Faults at exact points: a rank dies (SIGKILL), stalls (SIGSTOP) or loses its
# network (link down) in start-up, in an all-reduce, in a checkpoint and in
# shutdown. Each time the culprit is named within fault.timeout, every survivor
# ends, and the next start of the run goes on and completes. The points are
# calls of library functions, which a preloaded library intercepts
# (fault_point.c).
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
timeout=6
# Seconds that a loaded machine may add to the timeout, to end processes and for
# Slurm's own messages.
grace=20
settings=(--set checkpoint.every="5 steps" --set train.epochs=2
          --set fault.timeout="$timeout s")

# launch RANK CALL COUNT SIGNAL: messages count only after the first logged
# step, so that they belong to a step's all-reduce. Each task writes its pid and
# then becomes the trainer, with the fault point in it. $start_s: the seconds until
# the call was made.
launch()
{
    local point="$BUILD/tests/slurm/.libs/fault_point.so"

    start_s=$SECONDS
    expect_file "$point"
    rm -f pid.* hit
    unset FAULT_AFTER
    [ "$2" != ucp_tag_send_nbx ] || export FAULT_AFTER="$PWD/run/metrics.jsonl"
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix -K0 bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec env "$@"' rank \
        FAULT_RANK="$1" FAULT_CALL="$2" FAULT_COUNT="$3" FAULT_SIGNAL="$4" \
        FAULT_HIT="$PWD/hit" LD_PRELOAD="$point" \
        "$train" "${settings[@]}" full.yaml
    wait_until 60 test -s hit
    start_s=$((SECONDS - start_s + 1))
}

# Has every rank ended? (A rank is a direct child of slurmstepd.)
all_gone()
{
    local file

    for file in pid.?; do
        ! grep -qs cddp-train "/proc/$(cat "$file")/cmdline" || return 1
    done
}

# The next start goes on from the last checkpoint, and completes.
goes_on()
{
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" full.yaml
    expect_equal status "$(summary_field run/summary.json status)" 0
    expect_equal step "$(summary_field run/summary.json step)" 84
}

# named RANK HOST CALL: the culprit is named once in the output, and in the
# record. In start-up no run owns the run directory yet, so there is no record.
named()
{
    expect_lines bg.err "^cddp-train: rank $1 on $2 " 1
    note "$(grep -h "^cddp-train: rank $1 on $2 " bg.err)"
    [ "$3" != H5Fopen ] || return 0
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" "$1"
    expect_equal host "$(summary_field run/exit.json culprit_host)" "$2"
}

# fault RANK HOST SIGNAL CALL COUNT
fault()
{
    local begin

    run_file full
    launch "$1" "$4" "$5" "$3"
    begin=$SECONDS
    finish nonzero
    in_time $((timeout + grace + 5 * start_s)) "$begin" ||
        fail "the job ended $((SECONDS - begin)) s after the fault"
    wait_until 5 all_gone
    named "$1" "$2" "$4"
    goes_on
}

nodes_idle()
{
    [ "$(sinfo -h -N -o %t | grep -c '^idle$')" -eq 2 ]
}

link()
{
    ip link set v2 "$1"
}

# cut RANK CALL COUNT: the rank stops there while the link of node n2 goes down.
# Each side names a rank of the other; either side may write the record last.
cut()
{
    local begin

    need ip link show v2 -- "a cluster in namespaces"
    run_file full
    launch "$1" "$2" "$3" STOP
    trap 'link up' EXIT
    link down
    begin=$SECONDS
    kill -CONT "$(cat hit)"
    wait_until $((timeout + grace)) all_gone
    note "all ranks ended after $((SECONDS - begin)) s"
    link up
    finish nonzero
    expect_text bg.err '^cddp-train: rank [0-3] on n[12] '
    if [ "$2" != H5Fopen ]; then
        expect_equal status "$(summary_field run/exit.json status)" 76
        expect_text run/exit.json '"culprit_host": "n[12]"'
    fi
    wait_until 90 nodes_idle
    goes_on
}

# The points: in start-up, the data is opened; in an all-reduce, a message is
# sent; in a checkpoint, a shard is made durable; in shutdown, the summary is
# published.
for signal in KILL STOP; do
    test_case "$signal in start-up" fault 3 n2 $signal H5Fopen 1
    test_case "$signal in an all-reduce" fault 2 n2 $signal ucp_tag_send_nbx 5
    test_case "$signal in a checkpoint" fault 3 n2 $signal fsync 3
    test_case "$signal in shutdown" fault 0 n1 $signal rename:summary.json 1
done
test_case "cut link in start-up" cut 3 H5Fopen 1
test_case "cut link in an all-reduce" cut 2 ucp_tag_send_nbx 5
test_case "cut link in a checkpoint" cut 3 fsync 3
test_case "cut link in shutdown" cut 0 rename:summary.json 1
test_done
