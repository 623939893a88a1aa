#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# The sbatch template and cddp-srun with a script in place of cddp-train. The file
# ./plan has one word for each start of the script, which says what it does.
# Restarts and requeues are real.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"

template=$SOURCE/slurm/batch/train.sbatch

# Make bin/cddp-train. $1: the plan. Its words: a number
# is an exit status; "record:N" writes a record with status N and is then
# killed; "full" does so with 74, as a full disk does; "stale:N" writes a record of
# another start; "saves:N" notes a newer checkpoint in lives.jsonl and ends with N;
# "wait" ends with 75 at USR1 or TERM; "stays" writes a record and hangs;
# "cancels" cancels the job and is then ended by Slurm; "cancelled" ends with 75 and
# prints what slurmstepd says after scancel.
plan_write()
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
echo start >>starts
count=$(wc -l <starts)
restarts=${SLURM_RESTART_COUNT:-0}
word=$(cut -d' ' -f"$count" plan)
# write STATUS RESTARTS TEXT
write()
{
    cat >run/exit.json <<RECORD
{"job": "$SLURM_JOB_ID", "step_id": "$SLURM_JOB_ID.$SLURM_STEP_ID",
 "restarts": $2, "attempt": $CDDP_ATTEMPT, "status": $1, "text": "$3",
 "time": "start $count"}
RECORD
}
echo "start $count: $word $*"
case $word in
record:*)
    write "${word#*:}" "$restarts" "told in start $count"
    kill -KILL $$
    ;;
full)
    write 74 "$restarts" "cannot write run/x: No space left on device"
    kill -KILL $$
    ;;
stale:*)
    write "${word#*:}" 77 old
    kill -KILL $$
    ;;
saves:*)
    printf '{"event":"checkpoint","step":%d,"job":"%s","restart":%d,"attempt":%d}\n' \
        "$count" "$SLURM_JOB_ID" "$restarts" "$CDDP_ATTEMPT" >>run/lives.jsonl
    exit "${word#*:}"
    ;;
stays)
    write 76 "$restarts" "one rank ends"
    exec sleep 300
    ;;
cancels)
    scancel "$SLURM_JOB_ID"
    exec sleep 300
    ;;
wait)
    trap 'exit 75' USR1 TERM
    echo waiting
    sleep 600 &
    while :; do wait; done
    ;;
cancelled)
    echo "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT now ***" >&2
    exit 75
    ;;
*) exit "$word" ;;
esac
END
    chmod +x bin/cddp-train
}

# Submit the template with bin/cddp-train. $1: the plan; then options of sbatch
submit_plan()
{
    plan_write "$1"
    PATH=$PWD/bin:$BUILD:$PATH submit -N1 -n1 --ntasks-per-node=1 \
        -o job.out "${@:2}" "$template" run.yaml --fresh
}

ended_with()
{
    wait_job "$job" "$1" 300
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
    PATH=$PWD/bin:$BUILD:$PATH submit -N1 -n1 --ntasks-per-node=1 -o job.out \
        "$template" run.yaml
    ended_with FAILED 78:0
    expect_no_text job.out '^start'
    expect_text job.out 'print-rundir ended with status 78'
}

final_errors()
{
    submit_plan 65
    ended_with FAILED 65:0
    submit_plan record:78
    ended_with FAILED 78:0
    expect_text job.out 'srun ended with 137, which counts as 78'
}

# If no node launches its tasks, srun says so, and ends with 0.
unlaunched()
{
    mkdir -p bin
    cat >bin/srun <<END
#!/bin/bash
mkdir asked 2>/dev/null || exec "$(command -v srun)" "\$@"
echo "srun: error: task 0 launch failed: Unspecified error" >&2
END
    chmod +x bin/srun
    submit_plan 0
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 1
    expect_lines job.out 'srun created no step, which is tried again' 1
}

# After 75 the job is requeued; after 76 the step is restarted in place.
requeued()
{
    submit_plan "75 76 0"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 3
    expect_lines job.out ': requeue, ' 1
    expect_lines job.out ': restart, ' 1
    expect_equal Restarts "$(job_field "$job" Restarts)" 1
}

# A kill without a record, or with an old one, counts as a failed peer.
kills()
{
    submit_plan "stale:78 record:76 0"
    ended_with COMPLETED 0:0
    expect_lines job.out 'srun ended with 137, which counts as 76' 2
    expect_lines run/lives.jsonl 'srun names task 0 on n[12]: Killed' 1
    expect_lines run/lives.jsonl '"detail":"told in start 2"' 1
    expect_equal Restarts "$(job_field "$job" Restarts)" 0
}

# Three starts without a newer checkpoint are enough, over a requeue, too.
enough()
{
    submit_plan "76 75 record:76 0"
    ended_with FAILED 70:0
    expect_lines job.out '^start' 3
    expect_text job.out '3 starts in a row wrote no checkpoint newer than step -1'
    expect_text job.out 'cause 1: srun names task 0 on n[12]: Exited with exit code 76'
    expect_text job.out 'cause 3: told in start 3'
}

# A newer checkpoint resets the count.
progress()
{
    submit_plan "76 saves:76 76 76 0"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 5
    expect_equal Restarts "$(job_field "$job" Restarts)" 0
}

# A full disk does not become empty by waiting; other IO errors may pass.
io_errors()
{
    submit_plan full
    ended_with FAILED 74:0
    expect_lines job.out '^start' 1
    expect_text job.out 'the job ends with 74: waiting makes no room'
    rm -r run starts
    submit_plan "record:74 0"
    ended_with COMPLETED 0:0
    expect_equal Restarts "$(job_field "$job" Restarts)" 0
}

# A rank that hangs after another has recorded the end of the step.
outlived()
{
    submit_plan "stays 0"
    wait_job "$job" COMPLETED 300
    expect_text job.out 'still runs 30 s after'
    expect_lines job.out '^start' 2
}

# The ids are those of this start, but the record is older than the start.
record_of_old()
{
    local next

    submit -H -n1 --wrap true
    next=$((job + 1))
    scancel "$job"
    mkdir -p run
    printf '{"job": "%s", "restarts": 0, "attempt": 1, "status": 75}' \
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
echo "called: scontrol \$*" >>calls
exec $(command -v scontrol) "\$@"
END
    chmod +x bin/scontrol
    submit_plan "75 0"
    ended_with COMPLETED 0:0
    expect_text calls "^called: scontrol requeue $job\$"
    expect_lines job.out '^start' 2
}

# Slurm 25.11 and later would hold a job of --requeue=expedite that ends with 75.
expedited()
{
    mkdir -p bin
    cat >bin/scontrol <<END
#!/bin/bash
[ "\$1 \$2 \$3" != "--oneliner show job" ] || echo " ExpeditedRequeue=Yes"
[ "\$1" != requeue ] || echo "called: scontrol \$*" >>calls
exec $(command -v scontrol) "\$@"
END
    chmod +x bin/scontrol
    submit_plan "75 0"
    ended_with COMPLETED 0:0
    expect_text calls "^called: scontrol requeue $job\$"
    expect_lines job.out '^start' 2
    expect_equal Restarts "$(job_field "$job" Restarts)" 1
}

signalled()
{
    submit_plan "wait 0"
    wait_text 120 job.out waiting
    scancel --signal=USR1 "$job"
    ended_with COMPLETED 0:0
    expect_text job.out 'status 75 in attempt 1 after 0 requeues: requeue'
}

# The batch script gets the signal, too; its wait returns early.
signalled_all()
{
    submit_plan "wait 0"
    wait_text 120 job.out waiting
    scancel --full --signal=USR1 "$job"
    ended_with COMPLETED 0:0
    expect_lines job.out '^start' 2
}

cancelled()
{
    submit_plan "wait 0"
    wait_text 120 job.out waiting
    scancel "$job"
    wait_job "$job" CANCELLED 120
    expect_no_text job.out requeue
    expect_lines job.out '^start' 1
}

# The step ends because of scancel before the script gets its signal. (Nobody
# cancels the job of this test, so Slurm requeues it after its status 75.)
cancelled_step_first()
{
    mkdir -p bin
    cat >bin/scontrol <<END
#!/bin/bash
[ "\$1 \$2 \$3" != "--oneliner show job" ] || echo " JobState=COMPLETING "
exec $(command -v scontrol) "\$@"
END
    chmod +x bin/scontrol
    submit_plan "cancelled 0"
    ended_with COMPLETED 0:0
    expect_text job.out 'the job ends with 75: Slurm ends the job'
    expect_no_text job.out ': requeue, '
}

requeued_from_outside()
{
    submit_plan "wait 0"
    wait_text 120 job.out waiting
    requeue_job "$job"
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

# Each task of an array has its own directory, also after restarts, and takes its
# settings from its line of a file.
array()
{
    local task

    seq -f 'run.seed=%g train.batch=500' 5 >sweep.txt

    run_file plain
    sed -i 's/dir: run, //' plain.yaml
    trained --array=3,5 -o 'job-%a.out' "$template" plain.yaml --pick sweep.txt
    for task in 3 5; do
        wait_job "${job}_$task" COMPLETED 300
        expect_text "runs/plain-$task/exit.json" "\"job\": \"${job}_$task\""
        expect_text "runs/plain-$task/exit.json" '"status": 0'
        expect_no_text "job-$task.out" 'in use by'
        expect_text "runs/plain-$task/config.yaml" "^ *seed: $task\$"
        expect_text "runs/plain-$task/config.yaml" '^ *batch: 500$'
    done
    expect_equal runs "$(echo runs/*)" 'runs/plain-3 runs/plain-5'
}

# salloc lets its command go on after Slurm has ended the job.
allocation_gone()
{
    plan_write "cancels 0"
    PATH=$PWD/bin:$BUILD:$PATH run 75 salloc -Q -N1 -n1 --ntasks-per-node=1 \
        --time=10 cddp-srun run.yaml --fresh
    expect_text err 'the job ends with 75: Slurm has ended this job'
    expect_lines starts start 1
}

small_data
test_case "success" success
test_case "the run directory of the environment" directory_given
test_case "no run directory" no_directory
test_case "errors that no restart mends are final" final_errors
test_case "a step that no node launches is started again" unlaunched
test_case "75 and 76 are requeued" requeued
test_case "a record of this start beats srun's status" kills
test_case "a record that was there before is not believed" record_of_old
test_case "three starts without progress end with 70" enough
test_case "a newer checkpoint resets the count" progress
test_case "74: a full disk is final, other errors are tried again" io_errors
test_case "a step that outlives its record is killed" outlived
test_case "without RequeueExit, by scontrol" by_scontrol
test_case "--requeue=expedite, by scontrol" expedited
test_case "scancel --signal=USR1: checkpoint, requeue" signalled
test_case "scancel --full --signal=USR1" signalled_all
test_case "scancel: no requeue" cancelled
test_case "scancel: no requeue, although the step ends first" cancelled_step_first
test_case "scontrol requeue: once" requeued_from_outside
test_case "two experiments, two directories" experiments
test_case "a start that is refused" refused_start
test_case "a directory and a line of settings for each task of an array" array
test_case "cddp-srun in an allocation that has ended" allocation_gone
test_done
