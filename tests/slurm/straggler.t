#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# A run names the rank that makes the others wait, and why. One of two ranks is
# disturbed much more than a busy machine disturbs the other. The cases wait for
# its line, and do not mind what else is named: on a busy machine that may be
# true as well. With CDDP_QUIET_SECONDS=600, on an idle machine, a run that
# nothing disturbs must name nobody for so long.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
# Cases end their runs themselves. This limit ends only a run that hangs.
RUN_LIMIT=600
slow=$BUILD/tests/slurm/.libs/slow_point.so
cgroup=
loops=() # ids of busy loops; global, as the trap at the end of the case reads it

# The cgroup of a case can be removed when its tasks are gone.
leave()
{
    local tries

    rm -rf "$DATA"
    for ((tries = 0; tries < 100; tries++)); do
        if [ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null; then
            break
        fi
        sleep 0.1
    done
}
trap leave EXIT

# The cores on which this process may run, one a line.
cores()
{
    awk '/^Cpus_allowed_list/ {
        n = split($2, parts, ",")
        for (i = 1; i <= n; i++) {
            last = split(parts[i], ends, "-")
            for (c = ends[1]; c <= ends[last]; c++)
                print c
        }
    }' /proc/self/status
}

# launch CODE ARG...: train on two nodes for longer than the case lasts. Every
# rank runs the shell's CODE first, which may set the array "with". Batches are
# so large that a step computes for longer than a thread keeps a core.
launch()
{
    local code=$1

    shift
    run_file full
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n2 --mpi=pmix --time=10 bash -c \
        'with=(); eval "$0"; exec "${with[@]}" "$@"' "$code" \
        "$train" --set train.epochs=1000000 --set train.threads=1 \
        --set train.batch=500 \
        --set "data.valid=[]" --set "checkpoint.every=1000 min" \
        --set "obs.every=1 s" --set obs.tensorboard=false \
        --set train.log_every=100000 "$@" full.yaml
}

# named LINE: the run says so, and its file has the event.
named()
{
    wait_text 110 bg.out "$1"
    expect_text run/metrics.jsonl '^\{"event": "straggler", "step": [0-9]+, "epoch": [0-9]+, "time": "[^"]*", "host": "n2", "cause": "[a-z, ]+", "seconds": [0-9.e-]+, "median": [0-9.e-]+(, "rank": 1)?\}$'
    note "$(grep -E "$1" bg.out | head -n 1)"
    end
}

# End the run by a signal, upon which it writes a checkpoint and leaves.
end()
{
    scancel --signal=USR1 --name="$SLURM_JOB_NAME"
    finish 75
}

# Let another process take nine tenths of core $1, and add its id to "loops". Where
# the kernel groups processes by session, priorities are those of sessions.
loop()
{
    setsid nice -n -10 taskset -c "$1" bash -c \
        'echo -10 >/proc/self/autogroup; while :; do :; done' 2>/dev/null &
    loops+=($!)
}

# The second rank stays on one core. Once it makes steps, loops get most of that core.
# Other programs of the machine can avoid this core, and slow the first rank. The more
# programs there are, the more loops are needed to make rank 1 the slower one. However
# many there are, a step of rank 1 must not count as a hang.
busy_core()
{
    local core count begin
    local line='^rank 1 on n2 is slow: compute, shared core; '

    mapfile -t core < <(cores)
    [ "${#core[@]}" -ge 2 ] || skip "two cores"
    # shellcheck disable=SC2016 # expanded by the task
    launch '[ "$SLURM_PROCID" = 0 ] || with=(taskset -c '"${core[1]})" \
        --set train.batch=250 --set fault.timeout=600
    wait_text 110 bg.err 'first step done'
    trap '[ ${#loops[@]} -eq 0 ] || kill "${loops[@]}"' EXIT
    for ((count = 1; count <= 16; count *= 2)); do
        while [ "${#loops[@]}" -lt "$count" ]; do
            loop "${core[1]}"
        done
        begin=$SECONDS
        until text_or_end bg.out "$line" || ! in_time $((10 * count)) "$begin"; do
            sleep 0.1
        done
        ! grep -qE "$line" bg.out || break
    done
    wait_text 110 bg.out "$line"
    kill "${loops[@]}"
    trap - EXIT
    note "loops on the core of rank 1: ${#loops[@]}"
    named "$line"
}

# In the report, rank 1 on n2 has waited longer for its data than rank 0.
mapped()
{
    run 0 "$BUILD/cddp-report" -o report.html run
    run 0 python3 "$SOURCE/tests/cmd/report_page.py" data report.html
    mv out page.json
    run 0 python3 -c 'import json, sys
loads = json.load(open(sys.argv[1]))[0]["about"]["loads"]
ranks = sorted((one[1], loads["hosts"][one[0]], one[5]) for one in loads["ranks"])
print(ranks)
assert [one[:2] for one in ranks] == [(0, "n1"), (1, "n2")]
assert ranks[1][2] > ranks[0][2]' page.json
}

slow_reads()
{
    # shellcheck disable=SC2016 # expanded by the task
    launch '[ "$SLURM_PROCID" = 0 ] || with=(env SLOW_READ=1 LD_PRELOAD='"$slow"')' \
        --set data.shuffle=none
    named '^rank 1 on n2 is slow: data; '
    mapped
}

# bucket VERB ARG...: change the queue of packets that leave n2.
bucket()
{
    local daemon verb=$1

    shift
    daemon=$(cat "$CDDP_DEVCLUSTER_DIR/pid/slurmd-n2")
    nsenter --target "$daemon" --net tc qdisc "$verb" dev eth0 root "$@"
}

# Packets that leave n2 pass a token bucket.
slow_link()
{
    need command -v tc -- "tc (iproute2)"
    need bucket add tbf rate 40mbit burst 32k latency 200ms -- \
        "token buckets in the kernel"
    trap 'bucket del' EXIT
    launch true --set 'model={input: [1, 32, 32], layers: [flatten,
        {linear: {out: 512}}, relu, {linear: {out: 2}}]}'
    named '^messages from n2 are slow: comm; '
}

# Once the ranks make steps, the cgroup of one rank may use only a fiftieth of a core.
# The other rank has more, even if many programs share its core.
throttled()
{
    # shellcheck disable=SC2016 # expanded by the task
    launch '[ "$SLURM_PROCID" = 0 ] || echo $$ >'"$cgroup/cgroup.procs"
    wait_text 110 bg.err 'first step done'
    cgroup_limit 2000
    named '^rank 1 on n2 is slow: compute, throttled; '
}

# cgroup_limit US: the cgroup may use US microseconds of each 100 ms.
cgroup_limit()
{
    if [ -e "$cgroup/cpu.cfs_quota_us" ]; then
        echo "$1" >"$cgroup/cpu.cfs_quota_us"
    else
        echo "$1 100000" >"$cgroup/cpu.max"
    fi
}

# Make a cgroup, of version 1 or 2, that may use one core, and set its name.
cgroup_make()
{
    local top=/sys/fs/cgroup name=cddp-straggler-$$

    if [ -e "$top/cpu/cpu.cfs_quota_us" ]; then
        mkdir "$top/cpu/$name" || return 1
        cgroup=$top/cpu/$name
        echo 100000 >"$cgroup/cpu.cfs_period_us"
    else
        grep -qsw cpu "$top/cgroup.controllers" || return 1
        echo +cpu >"$top/cgroup.subtree_control" || return 1
        mkdir "$top/$name" || return 1
        cgroup=$top/$name
    fi && cgroup_limit 100000
}

throttled_if_possible()
{
    [ "$made" = yes ] || skip "the right to make a cgroup with a limit of CPU"
    throttled
}

undisturbed()
{
    [ -n "${CDDP_QUIET_SECONDS:-}" ] ||
        skip "CDDP_QUIET_SECONDS (an idle machine)"
    # shellcheck disable=SC2034 # read by start
    RUN_LIMIT=$((CDDP_QUIET_SECONDS + 120))
    launch true
    wait_text 60 bg.out '^step '
    sleep "$CDDP_QUIET_SECONDS"
    expect_no_text bg.out 'slow: '
    end
}

made=no
if cgroup_make 2>/dev/null; then
    made=yes
fi
test_case "a rank whose core is shared is named" busy_core
test_case "a rank whose reads are slow is named" slow_reads
test_case "a host whose messages are slow is named" slow_link
test_case "a rank that its cgroup throttles is named" throttled_if_possible
test_case "nobody is named if nothing is disturbed" undisturbed
test_done
