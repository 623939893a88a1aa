#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Ranks on emulated GPUs sum gradients by a stand-in for NCCL. They learn what
# one rank learns. If a rank is killed or stopped in a step, all others find and
# name it and end with 76, and the run goes on with fewer ranks. If one of the
# nodes has no GPUs, the run is refused.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
DATA=$(mktemp -d "${TMPDIR:-/tmp}/cddp-test-data.XXXXXX")
trap 'rm -rf "$DATA"' EXIT
"$BUILD/cddp-data" make ising -o "$DATA" --seed 11 --train 118 --valid 30 \
    --shards 2 >/dev/null || exit 1
chmod 755 "$DATA"
timeout=10
# On a loaded machine the end of processes and Slurm's own messages may take
# this many seconds more.
grace=25
settings=(--set train.batch=23 --set train.log_every=1 --set train.threads=1
          --set fault.timeout="$timeout s" --set checkpoint.every="4 steps")

emulated()
{
    export CDDP_CUDA_PLUGIN=$BUILD/.libs/libcddp_cuda_emu.so
    [ -e "$CDDP_CUDA_PLUGIN" ] || skip "this build has no CUDA"
    # All ranks must see the directory in which the stand-in shares memory.
    export CDDP_FAKE_NCCL=$PWD CDDP_FAKE_CUDA="devices=2"
    run_file plain
}

# near A B: the losses of two runs are equal within 1e-4.
near()
{
    paste -d' ' <(losses "$1/metrics.jsonl") <(losses "$2/metrics.jsonl") |
        awk '{ off = $2 - $4; if (off < 0) off = -off
               if ($1 != $3 || off > 1e-4) { print; bad = 1 } }
             END { exit bad || NR < 10 }' || fail "$1 and $2 differ"
}

# ranks N HOW STATUS ARGUMENT...: start N ranks on two nodes; HOW is run or
# start. Each rank writes its process id to pid.RANK.
ranks()
{
    local status=("$3")

    [ "$2" = run ] || status=()
    # shellcheck disable=SC2016 # expanded by the task
    "$2" "${status[@]}" srun -N2 -n"$1" --ntasks-per-node=2 --mpi=pmix -K0 bash -c \
        'echo $$ >pid.$SLURM_PROCID; exec "$@"' rank "$train" \
        "${settings[@]}" --set train.device=auto "${@:4}" plain.yaml
}

trains()
{
    emulated
    run 0 "$train" "${settings[@]}" --set train.device=cuda \
        --set train.epochs=3 --set run.dir=one plain.yaml
    ranks 4 run 0 --set train.epochs=3 --set run.dir=four
    near one four
    ranks 4 run 0 --set train.epochs=3 --set ddp.backend=ucx \
        --set run.dir=staged
    near one staged
}

# fault SIGNAL [SETTING]: rank 2 gets SIGNAL in the middle of the run. The emulated
# devices have SETTING in addition.
fault()
{
    local begin steps start_s=$SECONDS

    emulated
    CDDP_FAKE_CUDA+=" ${2-}"
    ranks 4 start - --set train.epochs=400
    wait_text 120 run/metrics.jsonl '"step": 14,'
    begin=$SECONDS
    start_s=$((begin - start_s))
    kill -"$1" "$(cat pid.2)"
    finish nonzero
    in_time $((timeout + 5 + grace + start_s)) "$begin" ||
        fail "the job ended $((SECONDS - begin)) s after the fault"
    expect_text bg.err '^cddp-train: rank 2 on n2'
    expect_equal status "$(summary_field run/exit.json status)" 76
    expect_equal culprit "$(summary_field run/exit.json culprit)" 2
    steps=$(losses run/metrics.jsonl | tail -n 1 | cut -d' ' -f1)
    ranks 3 run 0 --set train.epochs=$((steps / 6 + 2))
    expect_equal status "$(summary_field run/summary.json status)" 0
}

killed()
{
    fault KILL nccl_hangs=1
}

stopped()
{
    fault STOP
}

# Node n2 shows its ranks no GPU.
mixed()
{
    emulated
    # shellcheck disable=SC2016 # expanded by the task
    run 78 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        '[ "$SLURM_NODEID" = 0 ] || export CUDA_VISIBLE_DEVICES=
         exec "$@"' rank "$train" "${settings[@]}" --set train.device=auto \
        plain.yaml
    expect_text err 'n2'
    # shellcheck disable=SC2016 # expanded by the task
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        '[ "$SLURM_NODEID" = 0 ] || export CUDA_VISIBLE_DEVICES=
         exec "$@"' rank "$train" "${settings[@]}" --set train.device=cpu \
        --set train.epochs=1 plain.yaml
}

test_case "4 ranks learn what one learns, by NCCL and through the host" trains
test_case "a rank is killed, and aborts hang: the others end, 3 go on" killed
test_case "a rank is stopped: the others end, 3 go on" stopped
test_case "a node without GPUs among others is refused" mixed
test_done
