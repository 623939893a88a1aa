#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# What a run prints in a Slurm step, where standard output is no terminal: its
# start, where it is, checkpoints and evaluations, and what the time of all its
# starts was spent on. A rank is killed on the way. The last case checks the trace
# of ranks on two hosts.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
points=$BUILD/tests/slurm/.libs
slow=$points/slow_point.so

# launch PACE ARG...: 100 steps of at least PACE seconds.
launch()
{
    local pace=$1

    shift
    # shellcheck disable=SC2016 # expanded by the task
    CDDP_SYSFS=$PWD/sys start srun -N2 -n2 --mpi=pmix --time=10 -K0 bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec env LD_PRELOAD="$0" "$@"' \
        "$slow" SLOW_STEP="$pace" "$train" --set train.epochs=4 \
        --set train.batch=100 --set "obs.every=1 s" \
        --set "checkpoint.every=10 steps" \
        --set "train.eval_every=15 steps" "$@" full.yaml
}

# spent FILE KEY: a number of the object "spent" of FILE's last line with one.
spent()
{
    grep -o '"spent":.*' "$1" | tail -n 1 | grep -o "\"$2\":[^,}]*" |
        cut -d: -f2
}

# What the files say of the wall time: from the start of the first process to
# the end of the last one. The kinds in summary.json must sum to it.
sums_to_wall()
{
    local first last sum

    first=$(grep -m 1 '"event":"begin"' run/lives.jsonl >first
            echo "$(spent first until_ms) $(spent first start_up)")
    last=$(spent run/lives.jsonl until_ms)
    sum=$(sed -n '/"spent"/,/}/p' run/summary.json | grep -v '"wall"' |
        sed -nE 's/^ *"[a-z_]+": ([0-9.e-]+),?$/\1/p' | paste -sd+)
    note "$(sed -n '/"spent"/,/}/p' run/summary.json | tr -d '\n ')"
    echo "$first $last $sum" | awk '{
        n = split($4, parts, "+")
        for (i = 1; i <= n; i++) sum += parts[i]
        wall = ($3 - $1) / 1000 + $2
        printf "# %d kinds sum to %.2f s, wall time %.2f s\n", n, sum, wall
        d = sum - wall
        exit !(n == 10 && d * d <= (0.01 * wall + 0.05) ^ 2)
    }' || fail "the kinds do not sum to the wall time"
}

starts_and_ends()
{
    run_file full
    # UCX does not find the port of mlx5_7, which is InfiniBand. mlx5_8 is RDMA over
    # Ethernet, so the warning does not name it.
    mkdir -p sys/class/infiniband/mlx5_{7,8}/ports/1
    echo "4: ACTIVE" >sys/class/infiniband/mlx5_7/ports/1/state
    echo "4: ACTIVE" >sys/class/infiniband/mlx5_8/ports/1/state
    echo InfiniBand >sys/class/infiniband/mlx5_7/ports/1/link_layer
    echo Ethernet >sys/class/infiniband/mlx5_8/ports/1/link_layer
    launch 0.1
    wait_text 110 bg.out '^saved a checkpoint of step 20 '
    wait_text 110 run/metrics.jsonl '"step": 23,'
    kill -KILL "$(cat pid.1)"
    finish nonzero
    expect_text bg.out '^run: full in run, new$'
    expect_text bg.out '^ranks: 2 x [0-9]+ threads? on 2 hosts \(n1, n2\), transports: tcp:eth0 between hosts$'
    expect_lines bg.err 'over tcp:eth0 .* InfiniBand is up \(mlx5_7:1\)' 1
    expect_text bg.out '^model: [0-9,]+ parameters, fp32 on cpu$'
    expect_text bg.out '^data: 2,500 samples in 3 files, 600 to evaluate; 25 steps an epoch, 4 epochs$'
    expect_text bg.out '^time: '
    expect_text bg.out '^step [0-9]+ of 100  epoch [1-4]/4, [0-9]+ %  loss [0-9.]+  ETA [0-9]+ (s|min)  [0-9.]+ samples/s  comm [0-9]+ %'
    expect_text bg.out '^evaluated at step 15  valid loss .*  accuracy '
    launch 0 --set "data.valid=[]"
    finish 0
    expect_text bg.out '^run: full in run, resumed from step [2-9]0 of 20[0-9-]*T[0-9:]*Z$'
    expect_text bg.out '^epoch 4/4  step 100 '
    expect_text bg.out '^  lost to restarts +[0-9.]+ s'
    expect_text bg.out '^  wall time +[0-9.]+ s 100.0 %'
    expect_text bg.out '^CPU efficiency of this start: [0-9]+ % of [0-9]+ cores$'
    expect_text bg.out '^peak memory: .*the ranks of a node may use '
    # At least the time that the new start took to come.
    in_order 0.01 "$(spent run/lives.jsonl lost)" || fail "nothing was lost"
    sums_to_wall
}

# The nodes of this cluster share the clock of one kernel, so clock_point makes the
# clock of the second node one second ahead.
traced()
{
    run_file full
    # shellcheck disable=SC2016 # expanded by the task
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        '[ "$SLURM_NODEID" = 0 ] ||
             export LD_PRELOAD="$0" CLOCK_MONOTONIC_AHEAD=1
         exec "$@"' "$points/clock_point.so" "$train" \
        --set train.epochs=1 --set "data.valid=[]" --set obs.trace=chrome \
        --set obs.trace_steps=3:30 full.yaml
    run 0 python3 "$SOURCE/tests/slurm/trace_check.py" run/trace.json 4 2 1
    note "$(cat out)"
}

test_case "a killed run says what it does, and where its time went" \
    starts_and_ends
test_case "the trace has the ranks of both nodes on one clock" traced
test_done
