#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Events while a checkpoint is written: signals, scontrol requeue, the death of
# the batch script. A rank stops at an exact point of the first checkpoint
# (fault_point.c), the event happens, and the rank goes on. Tested with one
# checkpoint file per rank and with one shared file (MPI-IO), with checkpoints
# that are written behind training, and with a comm hook, whose state is in the
# checkpoint, too. The run ends with the bits of an undisturbed run.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
point=$BUILD/tests/slurm/.libs/fault_point.so
hook='ddp.hook={powersgd: {rank: 1, start_step: 5, min_compression: 1}}'
# Most cases say at which step a run leaves, so checkpoints are written between
# two steps.
settings=(--set train.epochs=2 --set checkpoint.every="10 steps"
          --set "$hook" --set checkpoint.async=false)

# armed RANK CALL COUNT [VARIABLE=VALUE]: make the command that becomes rank
# $SLURM_PROCID and contains the fault point.
armed()
{
    cat >armed <<END
#!/bin/bash
[ ! -e hit ] || exec "$train" "\$@"
exec env FAULT_RANK=$1 FAULT_CALL=$2 FAULT_COUNT=$3 FAULT_SIGNAL=STOP ${4-} \\
    FAULT_HIT="$PWD/hit" LD_PRELOAD="$point" "$train" "\$@"
END
    chmod +x armed
}

resumes()
{
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" "$@" full.yaml
    expect_text err 'resumed from'
    expect_straight_end
}

step_id()
{
    squeue -h -s -n "$SLURM_JOB_NAME,armed" -o %i | grep -v -e batch -e extern
}

verify_all()
{
    local checkpoint

    for checkpoint in run/checkpoints/step-*; do
        run 0 "$BUILD/cddp-ckpt" verify "$checkpoint"
    done
}

# signalled IO SIGNAL CALL COUNT: send SIGNAL to the step while rank 3 is
# stopped in CALL.
signalled()
{
    [ "$1" != mpi ] || need_mpi
    run_file full
    armed 3 "$3" "$4"
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix ./armed \
        "${settings[@]}" --set checkpoint.io="$1" full.yaml
    wait_until 60 test -s hit
    scancel --signal="$2" "$(step_id)"
    kill -CONT "$(cat hit)"
    finish 75
    expect_equal status "$(summary_field run/exit.json status)" 75
    expect_text bg.err 'asked to stop: checkpointed at step 10 of'
    verify_all
    resumes --set checkpoint.io="$1"
}

# The thread of rank 3, which writes the checkpoint of step 10, is stopped, and
# with it the rank, when TERM comes. The run has gone on: it leaves at a later
# step, with that checkpoint and one more.
signalled_behind()
{
    run_file full
    armed 3 fsync 1
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix ./armed \
        "${settings[@]}" --set checkpoint.async=true full.yaml
    wait_until 60 test -s hit
    scancel --signal=TERM "$(step_id)"
    kill -CONT "$(cat hit)"
    finish 75
    expect_equal status "$(summary_field run/exit.json status)" 75
    expect_text bg.err 'asked to stop: checkpointed at step 1[1-9] of'
    [ -d run/checkpoints/step-0000000010 ] ||
        fail "the checkpoint that was being written is missing"
    verify_all
    resumes --set checkpoint.async=true
}

# Rank 3 dies in its thread, which writes the checkpoint after that of step 10.
# The others end, and the run continues from step 10. The two ranks of a node
# write one shard together.
killed_behind()
{
    local shards views

    run_file full
    armed 3 fsync 1 "FAULT_SIGNAL=KILL \
        FAULT_AFTER=$PWD/run/checkpoints/step-0000000010"
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix -K0 ./armed \
        "${settings[@]}" --set checkpoint.async=true \
        --set checkpoint.writers=node --set fault.timeout="20 s" full.yaml
    finish nonzero
    expect_file hit
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" 3
    verify_all
    resumes --set checkpoint.async=true --set checkpoint.writers=node
    expect_text err 'resumed from .*step-0000000010'
    verify_all
    shards=(run/checkpoints/step-*/shard-[02].h5)
    views=(run/checkpoints/step-*/checkpoint.h5)
    expect_equal "shards of 2 nodes" "${#shards[@]}" $((2 * ${#views[@]}))
    [ ! -e run/checkpoints/step-0000000010/shard-1.h5 ] ||
        fail "rank 1 wrote a shard of its own"
}

batch()
{
    mkdir -p bin
    ln -sf ../armed bin/cddp-train
    submit -N2 -n4 --ntasks-per-node=2 --time=10 --output=log \
        --export=ALL,RUNDIR=run,PATH="$PWD/bin:$BUILD:$PATH" \
        "$SOURCE/slurm/batch/train.sbatch" "${settings[@]}" \
        --set checkpoint.io="$1" full.yaml
    wait_until 60 test -s hit
}

# Slurm itself sends SIGCONT, which wakes the stopped rank.
requeued()
{
    [ "$1" != mpi ] || need_mpi
    run_file full
    armed 3 "$2" "$3"
    batch "$1"
    scontrol requeue "$job"
    wait_job "$job" 'COMPLETED|FAILED|CANCELLED' 120
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_straight_end
}

# The process id of cddp-srun, which the batch script of job $job on this
# cluster has become.
script_pid()
{
    local file

    for file in $(grep -lsxzF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ); do
        file=${file%/environ}
        if grep -qsxzF "SLURM_JOB_ID=$job" "$file/environ" &&
            tr '\0' ' ' <"$file/cmdline" | grep -q '^cddp-srun ' &&
            grep -qs slurmstepd "/proc/$(awk '$1 == "PPid:" {print $2}' \
                "$file/status")/comm"; then
            echo "${file#/proc/}"
        fi
    done
}

# Slurm ends the step of a job whose batch script has died. The ranks end in order,
# and Slurm calls the job failed: its owner has to submit it again.
script_killed()
{
    local script

    run_file full
    armed 3 fsync 1
    batch independent
    script=$(script_pid)
    expect_equal "processes of the script" "$(wc -w <<<"$script")" 1
    kill -KILL "$script"
    wait_job "$job" FAILED 60
    # Nobody passes the words of the ranks on any more.
    wait_text 60 run/exit.json 'asked to stop: checkpointed at step 10 of'
    expect_equal status "$(summary_field run/exit.json status)" 75
    batch independent
    wait_job "$job" 'COMPLETED|FAILED|CANCELLED' 120
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_text log 'resumed from .*step-0000000010'
    expect_straight_end
}

straight_run "${settings[@]}" || exit 1
test_case "USR1 in a checkpoint" signalled independent USR1 fsync 1
test_case "TERM in a checkpoint" signalled independent TERM fsync 1
test_case "TERM in a checkpoint behind training" signalled_behind
test_case "a rank dies in a checkpoint behind training" killed_behind
test_case "USR1 in a checkpoint by MPI-IO" signalled mpi USR1 fsync 1
test_case "TERM in a checkpoint by MPI-IO" signalled mpi TERM fsync 1
test_case "requeue in the first checkpoint" requeued independent fsync 1
test_case "requeue in the first checkpoint by MPI-IO" requeued mpi fsync 1
test_case "the batch script is killed in the first checkpoint" script_killed
test_done
