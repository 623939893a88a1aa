#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Under cddp-srun a random rank gets SIGKILL, $CDDP_RESTARTS times (4; make
# check-long: 20). Measured are the time until a step is done again in the same
# allocation, and the number of lost steps.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
# shellcheck source=SCRIPTDIR/lifelib.sh
. "$(dirname "$0")/lifelib.sh"
small_data
restarts=${CDDP_RESTARTS:-4}
every=20

count()
{
    grep -c "\"event\":\"$1\"" run/lives.jsonl 2>/dev/null || true
}

# kill_one N: kill a rank in start N, after a checkpoint of this start, and
# append the seconds until the next step to ./seconds. It polls often, because
# it measures time. The two nodes take turns, as cddp-srun leaves out a node
# because of which two starts in a row have failed.
kill_one()
{
    local pid_of begin saved

    wait_until 300 happened first_step "$1"
    saved=$(count checkpoint)
    wait_until 300 happened checkpoint $((saved + 1))
    sleep "0.$((RANDOM % 10))" # the random moment, not a wait for an event
    pid_of=$(rank_pid $(($1 % 2 * 2 + RANDOM % 2)))
    begin=$(date +%s%N)
    kill -KILL "$pid_of"
    until happened first_step $(($1 + 1)); do
        [ $(($(date +%s%N) - begin)) -lt 300000000000 ] ||
            fail "no step was done again within 300 s"
        sleep 0.02
    done
    awk -v ns=$(($(date +%s%N) - begin)) 'BEGIN {printf "%.2f\n", ns / 1e9}' \
        >>seconds
}

# Print for each restart how many steps are lost: the step at the fault less the
# step of the resume.
steps_lost()
{
    awk -F'"step":' '/"event":"fault"/ {split($2, a, ","); at = a[1]}
        /"event":"resumed"/ {split($2, a, ","); print at - a[1]}' \
        run/lives.jsonl
}

restart()
{
    local i worst median lost

    life_file
    supervise --set train.epochs=100000 --set checkpoint.every="$every steps"
    wait_until 300 happened first_step
    job_find
    for ((i = 1; i <= restarts; i++)); do
        kill_one "$i"
    done
    scancel "$job"
    finish any
    sort -n seconds >sorted
    median=$(sed -n "$(((restarts + 1) / 2))p" sorted)
    worst=$(tail -n 1 sorted)
    lost=$(steps_lost | sort -n | tail -n 1)
    note "$restarts restarts: median $median s, worst $worst s;" \
        "at most $lost steps lost, of $every between checkpoints"
    expect_equal "restarts measured" "$(wc -l <seconds)" "$restarts"
    expect_equal "restarts in the history" "$(steps_lost | wc -l)" "$restarts"
    # A checkpoint that is still being written while training goes on does not
    # count yet, and the next one is written after it.
    [ "$lost" -lt $((2 * every)) ] || fail "$lost steps were lost"
    # Other tests make the machine slower. Only the long form runs alone, and
    # has limits.
    [ -n "${CDDP_RESTARTS:-}" ] || return 0
    in_order "$median" 3 || fail "the median is $median s"
    in_order "$worst" 5 || fail "the worst is $worst s"
}

test_case "a step is done again, $restarts times" restart
test_done
