#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# SIGKILL of one rank at random moments, $CDDP_KILLS times (10): the job ends
# within fault.timeout with a nonzero status, exit.json of a survivor names rank
# and host, every published checkpoint verifies, and at the end the run has the
# bits of an undisturbed run. Checkpoints are written every second step, so that
# some kills happen during a save.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
timeout=20
kills=${CDDP_KILLS:-10}

settings=(--set checkpoint.every="2 steps" --set train.epochs=$((kills * 12))
          --set fault.timeout="$timeout s")

# Each task writes its pid, then becomes the trainer.
launch()
{
    rm -f pid.*
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix -K0 bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec "$@"' rank "$train" "${settings[@]}" "$@"
}

rows()
{
    cat run/metrics.jsonl 2>/dev/null | wc -l
}

metrics_grow()
{
    [ "$(rows)" -gt "$1" ]
}

# Wait for the end of start-up (a new row of metrics) and then for a random
# time.
kill_one()
{
    local victim=$((RANDOM % 4)) begin host before start_s

    before=$(rows)
    rm -f run/exit.json
    start_s=$SECONDS
    launch full.yaml
    wait_until 60 metrics_grow "$before"
    start_s=$((SECONDS - start_s + 1))
    sleep "0.$((RANDOM % 10))" # the random moment, not a wait for an event
    kill -KILL "$(cat pid.$victim)"
    begin=$SECONDS
    finish nonzero
    in_time $((timeout + 5 * start_s)) "$begin" ||
        fail "the job ended $((SECONDS - begin)) s after the death"
    [ $victim -lt 2 ] && host=n1 || host=n2
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" "$victim"
    expect_equal host "$(summary_field run/exit.json culprit_host)" "$host"
    note "killed rank $victim in $(summary_field run/exit.json phase)," \
        "over after $((SECONDS - begin)) s"
}

verify_all()
{
    local checkpoint

    for checkpoint in run/checkpoints/step-*; do
        [ -d "$checkpoint" ] || continue
        run 0 "$BUILD/cddp-ckpt" verify "$checkpoint"
    done
}

random_kills()
{
    local i key

    run_file full
    for ((i = 0; i < kills; i++)); do
        kill_one
        verify_all
    done
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" --set checkpoint.every=never full.yaml
    expect_text err 'resumed from'
    mv run disturbed
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" --set checkpoint.every=never full.yaml
    for key in step loss accuracy; do
        expect_equal "$key" "$(summary_field disturbed/summary.json $key)" \
            "$(summary_field run/summary.json $key)"
    done
}

# A rank that is stopped but not dead is detected because it is silent.
stopped_rank()
{
    run_file full
    settings+=(--set fault.timeout="5 s")
    launch full.yaml
    wait_until 60 metrics_grow 3
    kill -STOP "$(cat pid.3)"
    finish nonzero
    kill -KILL "$(cat pid.3)" 2>/dev/null || true
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" 3
    expect_equal host "$(summary_field run/exit.json culprit_host)" n2
}

# If a node fails, all its ranks end at once, rank 0 among them; a surviving
# rank reports it.
lost_node()
{
    run_file full
    launch full.yaml
    wait_until 60 metrics_grow 3
    kill -KILL "$(cat pid.0)" "$(cat pid.1)"
    finish nonzero
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal writer "$(summary_field run/exit.json host)" n2
    expect_equal host "$(summary_field run/exit.json culprit_host)" n1
    expect_lines bg.err '^cddp-train: rank [01] on n1 ' 1
}

test_case "$kills kills at random moments lose nothing" random_kills
test_case "a lost node is named by the others" lost_node
test_case "a stopped rank is named" stopped_rank
test_done
