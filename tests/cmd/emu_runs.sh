#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train with the CUDA plugin on an emulated GPU (tests/cuda): 20 steps of
# several models have the losses, statistics and evaluations of the CPU within
# rounding. A run that is killed resumes on the GPU with the same bits, and on
# the other device within rounding.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
export CDDP_CUDA_PLUGIN=$build/.libs/libcddp_cuda_emu.so
[ -e "$CDDP_CUDA_PLUGIN" ] || {
    echo "SKIP: this build has no CUDA, so there is no $CDDP_CUDA_PLUGIN"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export OMP_NUM_THREADS=1

fail() {
    echo "FAIL: $*"
    failed=1
}

# train DEVICE DIRECTORY ARGUMENT...: one run, which succeeds.
train() {
    "$build/cddp-train" --set train.device="$1" --set run.dir="$2" \
        --set train.threads=1 "${@:3}" >"$2.log" 2>&1 ||
        fail "$2: status $?: $(cat "$2.log")"
}

# numbers DIRECTORY: what a run has computed, by its metrics, one "key value" a line.
numbers() {
    grep -vE '"event": "(checkpoint|resume|ranks|straggler)"' "$1/metrics.jsonl" |
        grep -oE '"(step|loss|accuracy|bits|grad_norm)": [^,}]*' |
        tr -d '":'
}

# near A B TOLERANCE: the losses, norms and evaluations of two runs are equal within
# the tolerance, relative to 1 or, if that is more, to themselves.
near() {
    paste -d' ' <(numbers "$1") <(numbers "$2") | awk -v most="$3" '
        { off = $2 - $4; size = $2 < 0 ? -$2 : $2
          if (off < 0) off = -off
          if ($1 != $3 || off > most * (size > 1 ? size : 1)) {
              print; bad = 1 } }
        END { exit bad || NR < 60 }' || fail "$1 and $2 differ"
}

# statistics A B: running statistics are equal within 1e-4.
statistics() {
    "$build/cddp-ckpt" diff "$1" "$2" |
        awk '!/^largest/ && /running_(mean|var)/ && $NF > 1e-4 { print; bad = 1 }
             END { exit bad }' || fail "statistics of $1 and $2"
}

cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data/ising --train 80 --valid 12 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make bytes -o data/bytes --valid 10 --bytes 10000 \
    "$source/examples" >/dev/null || exit 1
# The models of four examples, smaller; each file has 20 steps of 8 samples.
for model in ising gpt-bytes preset-lstm preset-unet2d; do
    small=()
    case $model in
    gpt-bytes)
        small=(--set model.input=[16] --set data.sequence=16
            --set model.width=16 --set model.depth=2 --set model.heads=2
            --set optimizer.adamw.lr=1.0e-4) ;;
    preset-lstm) small=(--set model.width=8) ;;
    # With some seeds a number near 0 gets through a relu on one device only.
    preset-unet2d) small=(--set model.width=2 --set model.depth=2
        --set run.seed=4) ;;
    esac
    small+=(--set train.batch=8 --set train.epochs=2 --set schedule=constant
        --set train.eval_every="5 steps" "$source/examples/$model.yaml")
    train cpu cpu-$model "${small[@]}"
    train cuda cuda-$model "${small[@]}"
    grep -q 'computes on cuda' cuda-$model.log || fail "$(cat cuda-$model.log)"
    near cpu-$model cuda-$model 2e-5
done

# ---- memory of two ranks ---------------------------------------------------
# Sums go through the host's memory only if NCCL does not make them.
checks() {
    "$build/cddp-train" --check --local 2 --set train.device=cuda \
        --set run.dir=two --set train.batch=8 "$@" \
        "$source/examples/ising.yaml" 2>&1
}
checks >check.log || fail "--check: $(cat check.log)"
grep -q 'batches, pinned' check.log || fail "--check: $(cat check.log)"
! grep -q 'staged sums' check.log || fail "NCCL: $(cat check.log)"
checks --set ddp.backend=ucx | grep -q 'staged sums, pinned' || fail "ucx"
# Sums along a tree have a scratch of 16 MiB.
checks --set train.reproducible=true >check.log || fail "--check: $(cat check.log)"
! grep -q 'staged sums' check.log || fail "NCCL: $(cat check.log)"
grep -q 'partial gradients *16\.[0-9]* MiB' check.log || fail "$(cat check.log)"

# ---- killed and resumed ----------------------------------------------------
# 80 steps, before differences of rounding grow (they double every few steps
# later), of a model with running statistics, dropout and a moving average.
cat >long.yaml <<'YAML'
data: {train: "data/ising/train-*.h5", valid: "data/ising/valid-*.h5",
       input: {path: /spins}, target: {path: /phase}}
model:
  input: [1, 32, 32]
  layers: [{maxpool: {kernel: 4}}, flatten, {linear: {out: 8}}, batchnorm, relu,
           {dropout: {rate: 0.2}}, {linear: {out: 2}}]
loss: cross_entropy
optimizer: {sgd: {lr: 0.01, momentum: 0.9}}
ema: {decay: 0.9}
train: {epochs: 8, batch: 8, eval_every: 25 steps}
checkpoint: {every: 5 steps}
YAML

# newest DIRECTORY: the name of its newest checkpoint, if it has one.
newest() {
    (cd "$1/checkpoints" 2>/dev/null && compgen -G 'step-*') | sort | tail -1
}

# killed DEVICE DIRECTORY: a life that is killed when it has written another
# checkpoint than the one it has resumed from.
kills=0
killed() {
    local before at=0
    before=$(newest "$2")
    "$build/cddp-train" --set train.device="$1" --set run.dir="$2" \
        --set train.threads=1 long.yaml >>"$2.log" 2>&1 &
    while [ "$(newest "$2")" = "$before" ] &&
        kill -0 $! 2>/dev/null && [ $((at += 1)) -lt 6000 ]; do
        sleep 0.01
    done
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ $? = 137 ] && kills=$((kills + 1))
}

# lives NAME DEVICE...: lives of one run, the last of which ends by itself.
lives() {
    local name=$1
    shift
    while [ $# -gt 1 ]; do
        killed "$1" "$name"
        shift
    done
    train "$1" "$name" long.yaml
    grep -q 'resumed from' "$name.log" || fail "$name: $(cat "$name.log")"
}

train cpu cpu-whole long.yaml
train cuda cuda-whole long.yaml
near cpu-whole cuda-whole 1e-4
statistics cpu-whole cuda-whole
lives cuda-again cuda cuda cuda
"$build/cddp-ckpt" diff cuda-whole cuda-again >diff.txt 2>&1 ||
    fail "cuda-again: $(cat diff.txt)"
lives cuda-to-cpu cuda cpu
near cpu-whole cuda-to-cpu 1e-4
statistics cpu-whole cuda-to-cpu
grep -q 'NVIDIA' cuda-to-cpu.log || fail "no word of the other device"
lives cpu-to-cuda cpu cuda
near cpu-whole cpu-to-cuda 1e-4
statistics cpu-whole cpu-to-cuda
echo "$kills of 4 lives were killed"
[ $kills -gt 0 ] || fail "every life ended before it could be killed"
exit $failed
