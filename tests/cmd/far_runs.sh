#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train on the test device (src/dev/dev_far.h): every run file of examples/
# has the bits of the CPU, in parameters, statistics, optimizer state, losses and
# evaluations. Runs that are killed resume, on the same device or another, and
# end with the same bits. What cannot be done on a device is refused.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
far=$build/tests/cmd/cddp-train-far
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
    "$far" --set train.device="$1" --set run.dir="$2" \
        --set train.threads=1 "${@:3}" >"$2.log" 2>&1 ||
        fail "$2: status $?: $(cat "$2.log")"
}

# numbers DIRECTORY: what a run has computed, by its metrics.
numbers() {
    grep -vE '"event": "(checkpoint|resume|ranks|straggler)"' "$1/metrics.jsonl" |
        grep -oE '"(step|epoch|[a-z_0-9]*loss|accuracy|grad_norm|[a-z]+_mae|top5|miou)": [^,}]*'
}

# same A B: two runs have ended with the same bits.
same() {
    "$build/cddp-ckpt" diff "$1" "$2" >diff.txt 2>&1 || fail "$1, $2: $(cat diff.txt)"
    cmp -s <(numbers "$1") <(numbers "$2") ||
        fail "$1, $2: $(diff <(numbers "$1") <(numbers "$2") | head -4)"
}

cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data/ising --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make fields -o data/fields --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make bytes -o data/bytes --valid 30 --bytes 20000 \
    "$source/examples" "$source/docs/man" >/dev/null || exit 1
# 32 images in the format of MNIST: the bytes of some text, and labels 0 to 9.
{ printf '\0\0\10\3\0\0\0\40\0\0\0\34\0\0\0\34'; seq 9999 | head -c $((32 * 784)); } >images
{ printf '\0\0\10\1\0\0\0\40'; seq -s '' 99 | tr 0-9 '\000-\011' | head -c 32; } >labels
for name in train valid; do
    "$build/cddp-data" convert idx -o data/mnist --name $name image=images \
        label=labels >/dev/null || exit 1
done
ln -s mnist data/letters

# ---- all examples ----------------------------------------------------------
# Files data-* have a test of their own, examples_data.sh. mnist comes first, as
# mnist-letters begins with its weights; the labels made here begin at 0.
for file in "$source"/examples/mnist.yaml "$source"/examples/[!d]*.yaml; do
    name=$(basename "$file" .yaml)
    [ ! -e "far-$name" ] || continue
    small=(--set train.epochs=1 --set train.batch=8)
    case $name in
    mnist-letters)
        small+=(--set checkpoint.init=cpu-mnist
            --set 'data.target={path: /label}') ;;
    preset-gpt2) small+=(--set model.width=24 --set model.depth=2) ;;
    gpt*) small+=(--set model.width=16) ;;
    preset-resnet* | preset-unet* | preset-deepcam)
        small+=(--set model.width=2) ;;
    esac
    train cpu "cpu-$name" "${small[@]}" "$file"
    train far "far-$name" "${small[@]}" "$file"
    same "cpu-$name" "far-$name"
    grep -q 'computes on far' "far-$name.log" || fail "$(cat "far-$name.log")"
done
[ "$(numbers far-ising | wc -l)" -ge 12 ] || fail "no numbers: $(numbers far-ising)"

# ---- killed and resumed ----------------------------------------------------
# A model with running statistics, dropout and a moving average; 360 steps.
cat >long.yaml <<'YAML'
data:
  train: "data/ising/train-*.h5"
  valid: "data/ising/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model:
  input: [1, 32, 32]
  layers:
    - conv: {out: 4, kernel: 3, pad: 1}
    - batchnorm
    - relu
    - dropout: {rate: 0.2}
    - flatten
    - linear: {out: 2}
loss: cross_entropy
optimizer: {adamw: {lr: 1.0e-3}}
ema: {decay: 0.9}
train: {epochs: 30, batch: 2, eval_every: 50 steps}
checkpoint: {every: 20 steps}
YAML

# newest DIRECTORY: the name of its newest checkpoint, if it has one.
newest() {
    (cd "$1/checkpoints" 2>/dev/null && compgen -G 'step-*') | sort | tail -1
}

# killed DEVICE DIRECTORY: a life that is killed when it has written another
# checkpoint than the one it has resumed from.
killed() {
    local before at=0
    before=$(newest "$2")
    "$far" --set train.device="$1" --set run.dir="$2" --set train.threads=1 \
        long.yaml >>"$2.log" 2>&1 &
    while [ "$(newest "$2")" = "$before" ] &&
        kill -0 $! 2>/dev/null && [ $((at += 1)) -lt 6000 ]; do
        sleep 0.01
    done
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ $? = 137 ] && kills=$((kills + 1))
}

kills=0
train cpu whole long.yaml
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
    "$build/cddp-ckpt" diff whole "$name" >diff.txt 2>&1 ||
        fail "$name: $(cat diff.txt)"
    cmp -s <(numbers whole | tail -12) <(numbers "$name" | tail -12) ||
        fail "$name ends with other numbers: $(tail -2 "$name/metrics.jsonl")"
}
lives far-again far far far
lives far-to-cpu far cpu
lives cpu-to-far cpu far
lives to-and-fro cpu far cpu far
echo "$kills of 7 lives were killed"
[ $kills -gt 0 ] || fail "every life ended before it could be killed"
# The files of a checkpoint are those of the CPU, byte for byte.
train far whole-far long.yaml
last=$(newest whole)
for file in whole/checkpoints/"$last"/*.h5; do
    cmp "$file" "whole-far/checkpoints/$last/$(basename "$file")" ||
        failed=1
done

# ---- comm hooks --------------------------------------------------------------
# Hooks compute on the host, so a run on the device has the bits of a run on the CPU.
# A run may also continue on the other device, with the residuals of its checkpoint.
hook=(--local 2 --set "ddp.hook={powersgd: {rank: 1, start_step: 2}}"
    --set train.batch=8)
train cpu cpu-hook "${hook[@]}" --set train.epochs=3 long.yaml
train far far-hook "${hook[@]}" --set train.epochs=2 long.yaml
train cpu far-hook "${hook[@]}" --set train.epochs=3 long.yaml
train cpu to-far "${hook[@]}" --set train.epochs=2 long.yaml
train far to-far "${hook[@]}" --set train.epochs=3 long.yaml
for name in far-hook to-far; do
    "$build/cddp-ckpt" diff cpu-hook $name >diff.txt 2>&1 ||
        fail "$name: $(cat diff.txt)"
done
for file in cpu-hook/checkpoints/"$(newest cpu-hook)"/*.h5; do
    cmp "$file" "to-far/checkpoints/$(newest to-far)/$(basename "$file")" ||
        failed=1
done
grep -q '"hook/residual' cpu-hook/checkpoints/*/*.json || fail "no residuals"
"$far" --check --set train.device=far "${hook[@]}" long.yaml >check.log 2>&1 ||
    fail "--check: $(cat check.log)"
sed -n '/memory of the host/,$p' check.log | grep -q 'comm hook' ||
    fail "--check: $(cat check.log)"

# ---- sums of the device's memory -------------------------------------------
for backend in threads ucx; do
    UCX_TLS=self,sysv,posix,cma,tcp UCX_NET_DEVICES=lo \
        "$build/tests/cmd/cddp-bench-far" allreduce --device far --local 3 \
        --backend $backend --csv --sizes 4:4K --rounds 2 >bench.csv 2>bench.err ||
        fail "$backend: $(cat bench.err)"
    awk -F, -v backend=$backend 'NR > 1 && (NF != 12 || $2 != 3 || $3 != backend ||
        $4 != "far" || !($6 > 0) || $11 != "staging") {exit 1}
        END {exit NR != 7}' bench.csv || fail "$(cat bench.csv)"
done

# ---- what is refused -------------------------------------------------------
# refused STATUS PATTERN ARGUMENT...: a run that is refused; it writes nothing.
refused() {
    local rc
    "$far" --set run.dir=refused --set train.device=far "${@:3}" long.yaml \
        >refused.log 2>&1
    rc=$?
    { [ $rc = "$1" ] && grep -qE -- "$2" refused.log; } ||
        fail "${*:3}: status $rc: $(cat refused.log)"
    [ ! -e refused/checkpoints ] ||
        [ -z "$(ls refused/checkpoints)" ] || fail "${*:3}: wrote a checkpoint"
}
refused 78 'tf32' --set train.precision=tf32 --set train.device=cpu
refused 78 'train.device.*cud' --set train.device=cudda
refused 71 'parameters .*optimizer state .*activations.* far has .* free' \
    --set 'model.layers=[flatten, {linear: {out: 60000000}}, {linear: {out: 2}}]'
"$build/cddp-train" --set train.device=far long.yaml >refused.log 2>&1
{ [ $? = 78 ] && grep -q 'train.device' refused.log; } ||
    fail "the installed command knows the test device: $(cat refused.log)"
exit $failed
