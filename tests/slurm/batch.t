#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# The sbatch template with a script in place of cddp-train. The file ./plan has
# one word for each start of the job, which says what the script does. Requeues
# are real.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"

template=$SOURCE/slurm/batch/cddp.sbatch

# Make bin/cddp-train and submit the template. $1: the plan. Its words: a number
# is an exit status; "record:N" writes a record with status N and is then
# killed; "stale:N" does so with a record of another start; "wait" ends with 75
# at USR1 or TERM.
submit_plan()
{
    mkdir -p bin
    echo "$1" >plan
    cat >bin/cddp-train <<'END'
#!/bin/bash
if [ "$1" = --print-rundir ]; then
    echo run
    exit
fi
mkdir -p run
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
    PATH=$PWD/bin:$PATH submit -N1 -n1 --ntasks-per-node=1 \
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
    expect_text job.out '^start 1: 0 run.yaml --fresh$'
}

# The directory in the environment variable is passed on as an option.
directory_given()
{
    RUNDIR=run submit_plan 0
    ended_with COMPLETED 0:0
    expect_text job.out '^start 1: 0 run.yaml --fresh --set run.dir=run$'
}

# Without a known run directory the job does not start.
no_directory()
{
    mkdir -p bin
    printf '#!/bin/bash\necho "asked: $*"; exit 78\n' >bin/cddp-train
    chmod +x bin/cddp-train
    PATH=$PWD/bin:$PATH submit -N1 -n1 --ntasks-per-node=1 -o job.out \
        "$template" run.yaml
    ended_with FAILED 78:0
    expect_no_text job.out .
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

# The ids are those of this start, but the record is older than the start.
record_of_old()
{
    local next

    submit -H -n1 --wrap true
    next=$((job + 1))
    scancel "$job"
    mkdir -p run
    printf '{\n  "step_id": "%s.0",\n  "restarts": 0,\n  "status": 75\n}\n' \
        "$next" >run/exit.json
    submit_plan 65
    expect_equal "job id" "$job" "$next"
    ended_with FAILED 65:0
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

# trained ARG...: run the template with the real program, on one rank.
trained()
{
    PATH=$BUILD:$PATH submit -N1 -n1 --ntasks-per-node=1 "$@"
}

# Two run files with one job name, as if of two users: two directories.
experiments()
{
    local name

    run_file plain
    sed -i 's/dir: run, //' plain.yaml
    for name in one two; do
        trained -o "$name.out" "$template" plain.yaml --set run.name=$name \
            --set train.batch=500
        ended_with COMPLETED 0:0
        expect_no_text "$name.out" 'resumed from'
        expect_text "runs/$name/exit.json" "\"step_id\": \"$job\\.0\""
    done
    expect_equal runs "$(echo runs/*)" 'runs/one runs/two'
    expect_equal "files beside" "$(ls runs/one)" "$(ls runs/two)"
    [ ! -e runs/one/srun.err ] || fail "the script writes into the directory"
}

state()
{
    (cd "$1" && find . -type f -exec sha256sum {} + | sort)
}

# A refused start writes no record: the directory is unchanged, and the status
# is srun's.
refused_start()
{
    local before

    run_file plain
    trained -o one.out "$template" plain.yaml --set train.batch=500
    ended_with COMPLETED 0:0
    before=$(state run)
    trained -o two.out "$template" plain.yaml --set train.batch=250
    ended_with FAILED 78:0
    expect_lines two.out 'is complete with another configuration .train.batch 500 -> 250.' 1
    expect_no_text two.out requeue
    expect_equal "run directory" "$(state run)" "$before"
}

# Each task of an array has its own directory, also after restarts.
array()
{
    local task

    run_file plain
    sed -i 's/dir: run, //' plain.yaml
    trained --array=3,5 -o 'job-%a.out' "$template" plain.yaml \
        --set train.batch=500
    for task in 3 5; do
        wait_job "${job}_$task" COMPLETED 60
        expect_text "runs/plain-$task/exit.json" "\"job\": \"${job}_$task\""
        expect_text "runs/plain-$task/exit.json" '"status": 0'
        expect_no_text "job-$task.out" 'in use by'
    done
    expect_equal runs "$(echo runs/*)" 'runs/plain-3 runs/plain-5'
}

small_data
test_case "success" success
test_case "the run directory of the environment" directory_given
test_case "no run directory" no_directory
test_case "errors that no restart mends are final" final_errors
test_case "75 and 76 are requeued" requeued
test_case "a record of this start beats srun's status" kills
test_case "a record that was there before is not believed" record_of_old
test_case "failures are final after MAX_RESTARTS" enough
test_case "without RequeueExit, by scontrol" by_scontrol
test_case "scancel --signal=USR1: checkpoint, requeue" signalled
test_case "scancel --full --signal=USR1" signalled_all
test_case "scancel: no requeue" cancelled
test_case "scontrol requeue: once" requeued_from_outside
test_case "two experiments, two directories" experiments
test_case "a start that is refused" refused_start
test_case "a directory for each task of an array" array
test_done
