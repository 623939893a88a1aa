#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Interruption: a signal in the middle of an epoch, checkpoint, status 75,
# requeue, resume. The run ends like one without interruption.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
four=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)
# Slow steps: a signal comes in time on a busy machine, too.
slow=("--export=ALL,LD_PRELOAD=$BUILD/tests/slurm/.libs/slow_point.so,SLOW_STEP=0.02")

# signal_step SIGNAL NAME: send SIGNAL to the step NAME once training step 30 is
# logged.
signal_step()
{
    wait_text 120 run/metrics.jsonl '"step": 30,'
    wait_until 60 step_signal "$1" "$2"
}

# Fails if the controller is too busy. A second signal would change nothing.
step_signal()
{
    local id

    id=$(squeue -h -s -n "$2" -o %i | grep -v -e batch -e extern) &&
        scancel --signal="$1" "$id"
}

usr1_and_resume()
{
    run_file full
    start srun -J usr1 -N2 -n4 --ntasks-per-node=2 --mpi=pmix "${slow[@]}" \
        "$train" full.yaml
    signal_step USR1 cddp-train
    finish 75
    expect_text bg.err 'asked to stop: checkpointed at step'
    expect_equal status "$(summary_field run/exit.json status)" 75
    run 0 "${four[@]}" "$train" full.yaml
    expect_text err 'resumed from'
    same_end
}

term_and_resume()
{
    run_file full
    start "${four[@]}" "${slow[@]}" "$train" full.yaml
    signal_step TERM cddp-train
    finish 75
    run 0 "${four[@]}" "$train" full.yaml
    same_end
}

# Without batch norm, whose statistics depend on a rank's own samples, the
# number of ranks changes only the order of sums.
fewer_ranks()
{
    local settings=(--set train.epochs=12 --set train.batch=60) loss other

    run_file plain
    run 0 "${four[@]}" "$train" "${settings[@]}" --set run.dir=four plain.yaml
    start "${four[@]}" "${slow[@]}" "$train" "${settings[@]}" plain.yaml
    signal_step USR1 cddp-train
    finish 75
    # The nodes share the cores of this machine, so threads that spin would
    # delay each other.
    export OMP_WAIT_POLICY=passive
    run 0 srun -N2 -n2 --mpi=pmix "$train" "${settings[@]}" plain.yaml
    expect_text err 'resumed from run/checkpoints/step-[0-9]{10} \(step [0-9]+, epoch [0-9]+, written by 4 ranks\)$'
    loss=$(summary_field run/summary.json loss)
    other=$(summary_field four/summary.json loss)
    note "validation loss $loss after 4 then 2 ranks, $other on 4"
    echo "$loss $other" |
        awk '{d = $1 - $2; exit !(d < 0.02 * $2 && -d < 0.02 * $2)}' ||
        fail "loss $loss is far from $other"
}

# The shipped batch script: the job requeues itself, and ends without help.
requeue()
{
    run_file full
    submit -N2 -n4 --ntasks-per-node=2 --time=10 --output=log \
        --export=ALL,RUNDIR=run,PATH="$BUILD:$PATH" \
        "$SOURCE/slurm/batch/train.sbatch" full.yaml
    wait_text 120 run/metrics.jsonl '"step": 30,'
    wait_until 60 scancel --signal=USR1 "$job.0"
    wait_job "$job" 'COMPLETED|FAILED|CANCELLED' 300
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_text log 'resumed from'
    same_end
}

job_find()
{
    job=$(squeue -h -n "$SLURM_JOB_NAME" -o %i) && [ -n "$job" ]
}

# becomes STATES WORD: does the job have one of these states? If not, call
# scontrol WORD again, which a busy controller may have refused.
becomes()
{
    job_state_is "$job" "$1" && return
    scontrol "$2" "$job" || true
    job_state_is "$job" "$1"
}

# An admin suspends the job for longer than fault.timeout: no rank is blamed,
# and the run goes on after the resume.
suspended()
{
    run_file full
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        --set "fault.timeout=2 s" full.yaml
    wait_text 120 run/metrics.jsonl '"step": 30,'
    wait_until 60 job_find
    wait_until 60 becomes SUSPENDED suspend
    sleep 5 # for so long; time itself is what is tested
    expect_no_text run/metrics.jsonl '"step": 1008,'
    wait_until 60 becomes 'RUNNING|COMPLET.*' resume
    finish 0
    expect_no_text bg.err 'did not answer|no sign of life|lost'
    same_end
}

straight_run || exit 1
test_case "USR1 checkpoints, status 75; resumed to the same bits" \
    usr1_and_resume
test_case "TERM does the same" term_and_resume
test_case "a run of 4 ranks goes on with 2" fewer_ranks
test_case "the batch script requeues itself and ends with the same bits" requeue
test_case "scontrol suspend and resume: no false alarm" suspended
test_done
