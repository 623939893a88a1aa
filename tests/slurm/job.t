#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# The data that slurm/job.h reads from a real job: ids, time left, signals, the
# record.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

probe=$BUILD/tests/slurm/job_probe

# Seconds left that the probe printed to out.
left()
{
    sed -n 's/.* left //p' out
}

time_left()
{
    run 0 srun -n1 -t 5 "$probe"
    expect_text out '^job [0-9]+ step [0-9]+\.0 tasks 1 restarts 0 host n[12] '
    in_order 270 "$(left)" || fail "$(left) s left of 300"
    in_order "$(left)" 301 || fail "$(left) s left of 300"
}

# A job without a time limit has no end: the probe prints -1.
no_limit()
{
    run 0 srun -n2 "$probe"
    expect_lines out 'tasks 2 .* left -1$' 2
}

# The clock of the node is wrong by an hour.
other_clock()
{
    local shift

    need test -e "$faketime" -- "libfaketime"
    for shift in +3600 -3600; do
        run 0 env LD_PRELOAD="$faketime" FAKETIME="$shift" \
            FAKETIME_DONT_FAKE_MONOTONIC=1 srun -n1 -t 5 "$probe"
        in_order 270 "$(left)" || fail "$(left) s left of 300"
        in_order "$(left)" 301 || fail "$(left) s left of 300"
    done
}

outside()
{
    run 0 "$probe"
    expect_text out '^job  step  tasks 1 restarts 0 host .* left -1$'
}

array_job()
{
    submit --array=3 -n1 -o job.out --wrap "srun $probe"
    wait_job "${job}_3" COMPLETED 30
    expect_text job.out "^job ${job}_3 step [0-9]+\\.0 "
    expect_text exit.json "\"job\": \"${job}_3\""
}

signals()
{
    submit -n1 -o job.out --wrap "srun $probe checkpoint"
    wait_text 30 job.out '^job'
    scancel --signal=USR1 "$job"
    wait_text 10 job.out 'got it'
    submit -n1 -o term.out --wrap "srun $probe term"
    wait_text 30 term.out '^job'
    scancel "$job"
    wait_text 10 term.out 'got it'
    expect_text exit.json '"status": 75'
    expect_text exit.json "\"step_id\": \"$job.0\""
}

# With two jobs of one program, the ranks of the right job are found.
ranks_by_id()
{
    local first second

    submit -n2 -o first.out --wrap "srun -n2 $probe checkpoint"
    first=$job
    submit -n2 -o second.out --wrap "srun -n2 $probe checkpoint"
    second=$job
    wait_until 30 two_lines first.out
    wait_until 30 two_lines second.out
    kill -KILL "$(task_pid "$second" 1 job_probe)"
    wait_until 10 gone "$second" 1
    task_pid "$second" 0 job_probe >/dev/null || fail "rank 0 is gone, too"
    task_pid "$first" 1 job_probe >/dev/null || fail "the other job was hit"
    ! task_pid "$first" 7 job_probe || fail "there is no rank 7"
}

two_lines()
{
    [ "$(grep -c '^job' "$1" 2>/dev/null)" = 2 ]
}

gone()
{
    ! task_pid "$1" "$2" job_probe >/dev/null
}

# --signal reaches the step. Slurm may send it up to 60 s early, here at once.
warned_before_the_end()
{
    submit -n1 -t 2 --signal=USR1@90 -o job.out --wrap "srun $probe checkpoint"
    wait_text 60 job.out 'got it'
    wait_job "$job" COMPLETED 30
}

test_case "ids and time left" time_left
test_case "no time limit" no_limit
test_case "time left, with a wrong clock" other_clock
test_case "outside of Slurm" outside
test_case "a job array" array_job
test_case "USR1 and scancel set the flag" signals
test_case "ranks are found by job and number" ranks_by_id
test_case "--signal warns before the time limit" warned_before_the_end
test_done
