#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Jobs that end before their work is done: time limits without --signal, slow
# steps, slow checkpoints, wrong clocks, preemption, repeated signals. Other
# tasks of an array and other jobs of a chain must not be disturbed. Each run
# ends with the bits of an undisturbed run.
#
# Slurm's time limits are minutes. Here a slice, the time of one life of a job,
# is some seconds long, because the rank moves the end of its job when it
# starts. slow_point.c makes steps, checkpoints and the start-up slow.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
template=$SOURCE/slurm/batch/train.sbatch
slow=$BUILD/tests/slurm/.libs/slow_point.so
straight=$(mktemp -d "${TMPDIR:-/tmp}/cddp-straight.XXXXXX")
trap 'rm -rf "$DATA" "$straight"' EXIT
many=(--set train.epochs=1 --set train.batch=50) # 50 steps
# 24 steps. In a slice of 26 s, there is time for at most 11 steps of 1 s.
some=(--set train.epochs=1 --set train.batch=105)
two=(--set train.epochs=1 --set train.batch=1250)

# ranks NAME SECONDS VARIABLE=VALUE...: make NAME/bin/cddp-train, which starts
# the real program with these variables. If SECONDS is not empty, the job ends
# so many seconds after this start. A VALUE $(first S T) is S in the first life
# of the job, later T (0). A VALUE $(hurt S T) is S in the first start of tasks 2
# and 3 of an array, otherwise T. While steps are slow, there is time to disturb
# a job, also on a busy machine.
ranks()
{
    local name=$1 seconds=$2

    shift 2
    mkdir -p "$name/bin"
    cat >"$name/bin/cddp-train" <<RANK
#!/bin/bash
[ "\$1" != --print-rundir ] || exec "$train" "\$@"
# A busy controller may refuse.
until [ -z "$seconds" ] ||
    scontrol update JobId="\$SLURM_JOB_ID" EndTime=now+$seconds; do
    sleep 0.5
done
first()
{
    [ -n "\$SLURM_RESTART_COUNT" ] && echo "\${2:-0}" || echo "\$1"
}
hurt()
{
    case \$SLURM_ARRAY_TASK_ID.\$SLURM_RESTART_COUNT.\$CDDP_ATTEMPT in
    [23]..1) echo "\$1" ;;
    *) echo "\$2" ;;
    esac
}
exec env LD_PRELOAD="$slow" $* "$train" "\$@"
RANK
    chmod +x "$name/bin/cddp-train"
    (cd "$name" && run_file full)
}

# one NAME ARG...: submit the template in NAME. The ARGs before -- are options
# of sbatch, those after it are options of cddp-train. Sets $job.
one()
{
    local name=$1 options=()

    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    PATH=$PWD/$name/bin:$BUILD:$PATH submit -N1 -n1 --ntasks-per-node=1 \
        --chdir="$PWD/$name" -o "$PWD/$name/log" "${options[@]}" \
        "$template" full.yaml "$@"
}

# Make a template without --signal, so that the run itself has to watch the
# time.
no_signal()
{
    sed 's/ --signal=[^ ]*//' "$SOURCE/slurm/batch/train.sbatch" >train.sbatch
    expect_no_text train.sbatch '^#SBATCH.*--signal'
    template=$PWD/train.sbatch
}

ended_with()
{
    wait_job "$1" "$2" 600
    expect_equal "exit code of $1" "$(job_field "$1" ExitCode)" "$3"
}

# same_bits RUNDIR NAME: the newest checkpoint equals that of the undisturbed
# run.
same_bits()
{
    "$BUILD/cddp-ckpt" diff "$1" "$straight/$2" >diff.out 2>&1 ||
        fail "$1 has other bits: $(tail -n 3 diff.out)"
}

# undisturbed NAME ARG...: make a run of full.yaml in $straight/NAME.
undisturbed()
{
    (
        cd "$straight" || exit 1
        run_file full
        timeout 120 srun -n1 --mpi=pmix "$train" full.yaml \
            --set run.dir="$1" "${@:2}" >"$1.out" 2>&1 ||
            { note "$(cat "$1.out")"; exit 1; }
    )
}

# These jobs run side by side: work for several slices, with right and wrong
# clocks; a step and a checkpoint that together take 0.6 of a slice; a start-up
# that takes longer than a slice.
slices()
{
    local -A shift=([early]=-3600 [late]=3600)
    local name jobs=() wrong=(LD_PRELOAD="$faketime:$slow"
                              FAKETIME_DONT_FAKE_MONOTONIC=1)

    no_signal
    ranks large 30 SLOW_STEP=9 SLOW_SAVE=9
    ranks start 20 SLOW_START=60
    one large --time=1 -- "${two[@]}"
    jobs+=("$job")
    one start --time=1 -- "${many[@]}"
    jobs+=("$job")
    if [ ! -e "$faketime" ]; then
        ranks right 26 SLOW_STEP=1
        one right --time=1 -- "${some[@]}" --set "checkpoint.reserve=1 s"
        jobs+=("$job")
        shift=()
    fi
    for name in "${!shift[@]}"; do
        wrong[2]=FAKETIME=$(printf %+d "${shift[$name]}")
        ranks "$name" 26 "${wrong[@]}" SLOW_STEP=1
        one "$name" --time=1 -- "${some[@]}" --set "checkpoint.reserve=1 s"
        jobs+=("$job")
    done
    ended_with "${jobs[1]}" FAILED 70:0
    expect_text start/log '3 starts in a row wrote no checkpoint newer than step -1'
    expect_lines start/log 'asked to stop during start-up' 3
    ended_with "${jobs[0]}" COMPLETED 0:0
    same_bits large/run two
    expect_lines large/log 'the time limit is near: checkpointed at step' 2
    expect_text large/log 'but Slurm kills a job 10 s .KillWait. after SIGTERM'
    for job in "${jobs[@]:2}"; do
        ended_with "$job" COMPLETED 0:0
    done
    for name in "${!shift[@]}"; do
        sliced "$name"
        clock_is "$name" "${shift[$name]}"
    done
    if [ ! -e "$faketime" ]; then
        sliced right
        skip "libfaketime, for clocks that are wrong"
    fi
}

# The run had at least three slices, and left each one in time.
sliced()
{
    local ends

    same_bits "$1/run" some
    ends=$(grep -c '"event":"end"' "$1/run/lives.jsonl")
    note "$1: $ends slices"
    in_order 3 "$ends" || fail "$1: $ends slices, expected at least 3"
    expect_lines "$1/run/lives.jsonl" '"event":"signal".*"detail":"time limit"' \
        $((ends - 1))
    expect_lines "$1/run/lives.jsonl" '"event":"end".*"status":75' $((ends - 1))
    expect_no_text "$1/log" 'TIME LIMIT'
    # Durations must not depend on the wrong clock.
    grep -o '"event":"first_step".*' "$1/run/lives.jsonl" |
        grep -o '"seconds":[^,}]*' | cut -d: -f2 >"$1.seconds"
    awk '$1 <= 0 || $1 > 100 {exit 1}' "$1.seconds" ||
        fail "$1: first steps after $(tr '\n' ' ' <"$1.seconds")s"
}

# The times in the records are those of the node's clock.
clock_is()
{
    local wrote is

    wrote=$(date -d "$(tail -n 1 "$1/run/lives.jsonl" |
        grep -o '"time":"[^"]*"' | cut -d'"' -f4)" +%s)
    is=$(($(date +%s) + $2))
    in_order $((is - 600)) "$wrote" ||
        fail "$1: $wrote in the records, expected about $is"
    in_order "$wrote" "$is" ||
        fail "$1: $wrote in the records, expected about $is"
}

# partition NAME ARG...: make it, unless it is there.
partition()
{
    scontrol show partition "$1" >/dev/null 2>&1 ||
        scontrol create PartitionName="$1" Nodes=ALL State=UP "${@:2}"
}

# A job of a partition with a higher tier preempts the run. The run leaves
# within GraceTime, and is started again later.
preempted()
{
    local low

    scontrol delete PartitionName=low 2>/dev/null || true
    scontrol delete PartitionName=high 2>/dev/null || true
    wait_until 60 partition low PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
    wait_until 60 partition high PriorityTier=10 PreemptMode=OFF
    ranks low "" "SLOW_STEP=\$(first 1 0.1)"
    one low -p low --time=10 -- "${many[@]}"
    low=$job
    wait_text 120 low/run/metrics.jsonl '"step": 3,'
    submit -p high -N2 --exclusive --wrap true
    wait_job "$job" COMPLETED 300
    ended_with "$low" COMPLETED 0:0
    same_bits low/run many
    expect_equal Restarts "$(job_field "$low" Restarts)" 1
    expect_lines low/run/lives.jsonl '"event":"end".*"status":75' 1
    expect_text low/log 'resumed from .*checkpoints/step-'
    scontrol delete PartitionName=low || true
    scontrol delete PartitionName=high || true
}

# If a checkpoint takes longer than KillWait (10 s), the run warns. It is killed
# in its next checkpoint, and resumes from the one before. Its last checkpoint
# takes too long, too, but the job has warned already. A second run gets two USR1
# and a TERM while it writes a checkpoint. Checkpoints are written between two
# steps.
slow_saves()
{
    local killed between=(--set checkpoint.async=false)

    ranks killed "" "SLOW_STEP=\$(first 0.3)" "SLOW_SAVE=\$(first 16 7)"
    one killed --time=10 -- "${some[@]}" "${between[@]}" \
        --set "checkpoint.every=12 steps"
    killed=$job
    ranks often "" SLOW_STEP=0.1 "SLOW_SAVE=\$(first 6)" SLOW_HIT=hit
    one often --time=10 -- "${many[@]}" "${between[@]}" \
        --set "checkpoint.every=8 steps"
    wait_until 120 test -e often/hit
    scancel --signal=USR1 "$job.0"
    scancel --signal=USR1 "$job.0"
    scancel --signal=TERM "$job.0"
    wait_text 120 killed/run/metrics.jsonl '"step": 13,'
    requeue_job "$killed"
    ended_with "$job" COMPLETED 0:0
    expect_equal Restarts "$(job_field "$job" Restarts)" 1
    expect_lines often/run/lives.jsonl '"event":"end".*"status":75' 1
    expect_text often/log 'asked to stop: checkpointed at step 8 '
    same_bits often/run many
    ended_with "$killed" COMPLETED 0:0
    expect_equal Restarts "$(job_field "$killed" Restarts)" 1
    expect_lines killed/log 'a checkpoint took [0-9.]+ s, but Slurm kills' 1
    expect_text killed/log 'a checkpoint took (1[6-9]|[2-9][0-9])\.[0-9] s, but .* 10 s .KillWait. after SIGTERM'
    expect_lines killed/run/lives.jsonl '"event":"kill_wait".*"restart":0,' 1
    expect_lines killed/run/lives.jsonl '"event":"kill_wait"' 1
    # This save would warn in another job.
    expect_text killed/run/lives.jsonl \
        '"event":"checkpoint".*"restart":1,.*"seconds":([7-9]|[1-9][0-9])'
    expect_text killed/log 'resumed from .*checkpoints/step-0000000012'
    same_bits killed/run some
}

# array_of NAME: submit an array of four tasks.
array_of()
{
    ranks "$1" "" "SLOW_STEP=\$(hurt 1 0.1)"
    sed -i 's/dir: run, //' "$1/full.yaml"
    one "$1" --array=1-4 --time=10 -o "$PWD/$1/log-%a" -- "${many[@]}"
}

# array_disturb NAME JOB: kill the rank of task 2, and let task 3 be requeued.
array_disturb()
{
    local task id

    for task in 2 3; do
        wait_text 120 "$1/runs/full-$task/metrics.jsonl" '"step": 3,'
    done
    id=$(job_field "$2_2" JobId)
    kill -KILL "$(task_pid "$id" 0 cddp-train)"
    scancel --signal=USR1 "$2_3"
}

array_check()
{
    local task

    for task in 1 2 3 4; do
        ended_with "$2_$task" COMPLETED 0:0
        same_bits "$1/runs/full-$task" many
        expect_equal "Restarts of task $task" "$(job_field "$2_$task" Restarts)" \
            $((task == 3))
    done
    expect_lines "$1/runs/full-2/lives.jsonl" '"event":"begin".*"attempt":2' 1
}

# In two arrays one task is killed and one is requeued: in the first array by
# RequeueExit, in the second by scontrol. A busy controller may refuse scontrol,
# which cddp-srun then calls again.
arrays()
{
    local by_exit by_scontrol

    array_of exits
    by_exit=$job
    mkdir -p site/bin
    cat >site/bin/scontrol <<WRAP
#!/bin/bash
[ "\$1 \$2" != "show config" ] || exit 0
[ "\$1" != requeue ] || echo "\$*" >>"$PWD/calls"
exec $(command -v scontrol) "\$@"
WRAP
    chmod +x site/bin/scontrol
    PATH=$PWD/site/bin:$PATH array_of site
    by_scontrol=$job
    array_disturb exits "$by_exit"
    array_disturb site "$by_scontrol"
    array_check exits "$by_exit"
    array_check site "$by_scontrol"
    expect_equal calls "$(sort -u calls)" "requeue ${by_scontrol}_3"
}

# A chain of three jobs. The first job is requeued and then completes the run;
# the others find the run complete.
chain()
{
    local jobs=()

    ranks chain "" "SLOW_STEP=\$(first 0.5 0.1)"
    for _ in 1 2 3; do
        one chain --dependency=singleton --time=10 -- "${many[@]}"
        jobs+=("$job")
    done
    wait_text 120 chain/run/metrics.jsonl '"step": 3,'
    scancel --signal=USR1 "${jobs[0]}"
    for job in "${jobs[@]}"; do
        ended_with "$job" COMPLETED 0:0
        expect_equal "Restarts of $job" "$(job_field "$job" Restarts)" \
            $((job == jobs[0]))
    done
    same_bits chain/run many
}

undisturbed many "${many[@]}" && undisturbed some "${some[@]}" &&
    undisturbed two "${two[@]}" || exit 1
test_case "time limits without --signal, and wrong clocks" slices
test_case "preemption" preempted
test_case "checkpoints slower than KillWait; signals inside one" slow_saves
test_case "arrays: the other tasks are left alone" arrays
test_case "a singleton chain" chain
test_done
