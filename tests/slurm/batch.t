#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# The sbatch template, with a script in place of cddp-train: what it does is in
# ./plan, one word per start of the job. Requeues are real.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

template=$SOURCE/slurm/batch/cddp.sbatch

# Make bin/cddp-train and submit the template; $1: the plan. Words: a number is
# an exit status; "record:N" leaves a record with status N and is then killed;
# "stale:N" the same, but the record is of another start; "wait" ends with 75 at
# USR1 or TERM.
submit_plan()
{
    mkdir -p bin
    echo "$1" >plan
    cat >bin/cddp-train <<'END'
#!/bin/bash
count=$((${SLURM_RESTART_COUNT:-0} + 1))
word=$(cut -d' ' -f"$count" plan)
write()
{
    printf '{\n  "step_id": "%s.%s",\n  "restarts": %d,\n  "status": %d\n}\n' \
        "$SLURM_JOB_ID" "$SLURM_STEP_ID" "$2" "$1" >run/exit.json
    kill -KILL $$
}
echo "start $count: $word $*"
case $word in
record:*) write "${word#*:}" "$((count - 1))" ;;
stale:*) write "${word#*:}" 77 ;;
wait)
    trap 'exit 75' USR1 TERM
    echo waiting
    sleep 60 &
    while :; do wait; done
    ;;
*) exit "$word" ;;
esac
END
    chmod +x bin/cddp-train
    PATH=$PWD/bin:$PATH RUNDIR=run submit -N1 -n1 --ntasks-per-node=1 \
        -o job.out "${@:2}" "$template" run.yaml --fresh
}

ended_with()
{
    wait_job "$job" "$1" 60
    expect_equal "exit code" "$(job_field "$job" ExitCode)" "$2"
}

success()
{
    submit_plan 0
    ended_with COMPLETED 0:0
    expect_text job.out '^start 1: 0 run.yaml --fresh --set run.dir=run$'
}

final_errors()
{
    submit_plan 65
    ended_with FAILED 65:0
    submit_plan record:78
    ended_with FAILED 78:0
    expect_text job.out 'srun says 137, taken as 78'
}

requeued()
{
    submit_plan "75 76 0"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 3
    expect_lines job.out ': requeue$' 2
    expect_equal Restarts "$(job_field "$job" Restarts)" 2
}

# A kill without a record, or with an old one, counts as a failed peer.
kills()
{
    submit_plan "stale:78 record:76 0"
    ended_with COMPLETED 0:0
    expect_lines job.out 'srun says 137, taken as 76' 2
    expect_lines job.out 'no rank left a record; srun names task 0 on n[12]' 1
}

enough()
{
    MAX_RESTARTS=1 submit_plan "76 76 0"
    ended_with FAILED 76:0
    expect_text job.out 'after 1 restarts: enough'
}

# A site without RequeueExit: the script calls scontrol requeue.
by_scontrol()
{
    mkdir -p bin
    cat >bin/scontrol <<END
#!/bin/bash
[ "\$1 \$2" != "show config" ] || exit 0
echo "called: scontrol \$*"
exec $(command -v scontrol) "\$@"
END
    chmod +x bin/scontrol
    submit_plan "75 0"
    ended_with COMPLETED 0:0
    expect_text job.out '^called: scontrol requeue'
    expect_lines job.out '^start' 2
}

signalled()
{
    submit_plan "wait 0"
    wait_text 30 job.out waiting
    scancel --signal=USR1 "$job"
    ended_with COMPLETED 0:0
    expect_text job.out 'status 75 after 0 restarts: requeue'
}

# The batch script gets the signal, too; its wait returns early.
signalled_all()
{
    submit_plan "wait 0"
    wait_text 30 job.out waiting
    scancel --full --signal=USR1 "$job"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 2
}

cancelled()
{
    submit_plan "wait 0"
    wait_text 30 job.out waiting
    scancel "$job"
    wait_job "$job" CANCELLED 30
    expect_no_text job.out requeue
    expect_lines job.out '^start' 1
}

requeued_from_outside()
{
    submit_plan "wait 0"
    wait_text 30 job.out waiting
    scontrol requeue "$job"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 2
    expect_equal Restarts "$(job_field "$job" Restarts)" 1
}

test_case "success" success
test_case "errors that no restart mends are final" final_errors
test_case "75 and 76 are requeued" requeued
test_case "a record of this start beats srun's status" kills
test_case "failures are final after MAX_RESTARTS" enough
test_case "without RequeueExit, by scontrol" by_scontrol
test_case "scancel --signal=USR1: checkpoint, requeue" signalled
test_case "scancel --full --signal=USR1" signalled_all
test_case "scancel: no requeue" cancelled
test_case "scontrol requeue: once" requeued_from_outside
test_done
