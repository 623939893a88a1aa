#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The plan that `cddp-train --check` prints, and that train.recompute changes
# memory, but no bit of a run.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# check SETTING...: write the plan to the file plan
check() {
    local settings=()
    for setting in "$@"; do
        settings+=(--set "$setting")
    done
    "$build/cddp-train" --check "${settings[@]}" run.yaml >plan 2>&1 ||
        fail "--check $*: $(cat plan)"
}

# says PATTERN: does the plan contain PATTERN?
says() {
    grep -qE -- "$1" plan || fail "no \"$1\" in: $(cat plan)"
}

bytes_of() {
    sed -n "s/^  $1 *\([0-9.]* [KMG]*i*B\)$/\1/p" plan | sed 's/iB$//; s/ //' |
        numfmt --from=iec
}

# train DIRECTORY RANKS SETTING...
train() {
    local settings=() directory=$1 ranks=$2
    shift 2
    for setting in "$@"; do
        settings+=(--set "$setting")
    done
    "$build/cddp-train" --local "$ranks" --set "run.dir=$directory" "${settings[@]}" \
        run.yaml >"$directory.log" 2>&1 ||
        fail "$directory: $(cat "$directory.log")"
}

cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data/ising --train 96 --valid 32 \
    --shards 2 >/dev/null || exit 1
cp "$source/examples/ising.yaml" run.yaml
# Eight blocks with every layer that has state or draws random numbers.
deep='model={input: [1, 32, 32], layers: [conv: {out: 8, kernel: 3, pad: 1},
repeat: {times: 8, layers: [{name: c, conv: {out: 8, kernel: 3, pad: 1}},
batchnorm, relu, {name: drop, dropout: {rate: 0.1}}, {name: sum, add: , from: [entry,
drop]}]}, linear: {out: 2}]}'
deep=${deep//$'\n'/ }

check "$deep" train.batch=32
says '^c_1 +conv +8x32x32 +584  blocked$'
grep -q 'recompute' plan && fail "recompute is off: $(cat plan)"
full=$(bytes_of 'activations, scratch')
check "$deep" train.batch=32 train.recompute=blocks
says '^c_1 +conv +8x32x32 +584  blocked, recomputed in block [1-9][0-9]*$'
says '^linear1 +linear +2 +16,386  plain$'
says 'recompute: [1-9][0-9]* layers in [1-9][0-9]* blocks'
less=$(bytes_of 'activations, scratch')
[ "$((2 * less))" -lt "$full" ] ||
    fail "activations: $less bytes, without recomputing $full"
# ---- copies of the data ----------------------------------------------------

mkdir node
check data.io=stage data.stage_dir="$PWD/node"
says '^  stage: 3 of 3 shards \(.*\) are copied to .*/node on each node'
[ -z "$(ls node)" ] || fail "--check copies: $(ls node)"
check data.io=stage data.stage_dir="$PWD/nowhere"
says '^  stage: 3 of 3 shards .* on this node the directory has room for 0 B$'
check
! grep -q '^  stage' plan || fail "copies without data.io: stage: $(cat plan)"

check 'model={input: [1, 32, 32], layers: [linear: {out: 2}]}' \
    train.recompute=blocks
says 'recompute: nothing'

# Fused calls.
check 'model={preset: resnet18, input: [1, 32, 32], classes: 2, width: 16}'
says '^s1b1_bn1 +batchnorm +16x32x32 +32  computed with s1b1_relu1$'
says '^s1b1_bn2 +batchnorm +16x32x32 +32  computed with s1b1$'
says '^s1b1_add +add +16x32x32 +0  computed with s1b1$'
says '^s2b1_bn2 +batchnorm +32x16x16 +64  (blocked|plain)$'
says '^s2b1_downbn +batchnorm +32x16x16 +64  computed with s2b1$'
says '25 are computed with another layer'
vit='model={preset: vit, input: [1, 32, 32], classes: 2, patch: 8, width: 16,
     depth: 1, heads: 2}'
check "$vit" train.precision=auto
says '^linear3 +linear +[0-9x]+ +[0-9,]+  computed with gelu1$'
grep -q 'products in bf16' plan && bf16=', bf16' || bf16=''
says "^gelu1 +gelu +[0-9x]+ +0  plain$bf16\$"
says "^layernorm1 +layernorm +[0-9x]+ +32  plain$bf16\$"
[ -z "$bf16" ] || says 'bf16: the outputs of 1 layers, forward and backward; of 3 more'

# In bf16, tensors between convolutions take half the memory, and any number of
# ranks gives equal bits.
residual='model={preset: resnet18, input: [1, 32, 32], classes: 2, width: 16}'
check "$residual" train.precision=fp32
full=$(bytes_of 'activations, scratch')
kept=$(bytes_of 'kept for backward')
if "$build/cddp-train" --check --set train.precision=bf16 run.yaml >plan 2>&1
then
    check "$residual" train.precision=bf16
    says '^s1b1_conv1 +conv +16x32x32 +2,304  blocked, bf16$'
    says '^s1b1_bn1 +batchnorm +16x32x32 +32  computed with s1b1_relu1$'
    says '^s1b1_relu1 +relu +16x32x32 +0  blocked, bf16$'
    says '^pool +mean +128 +0  plain$'
    says 'bf16: the outputs of [1-9][0-9]* layers, forward and backward'
    [ "$((3 * $(bytes_of 'activations, scratch')))" -lt "$((2 * full))" ] ||
        fail "bf16: activations do not shrink: $full bytes in fp32, $(cat plan)"
    [ "$((5 * $(bytes_of 'kept for backward')))" -lt "$((3 * kept))" ] ||
        fail "bf16: what is kept does not shrink: $kept in fp32, $(cat plan)"
    for ranks in 1 2 4; do
        train "bf16-$ranks" "$ranks" "$residual" train.precision=bf16 \
            train.reproducible=true train.microbatch=8 train.batch=32 \
            train.epochs=1
    done
    for ranks in 2 4; do
        "$build/cddp-ckpt" diff bf16-1/checkpoints/step-* \
            "bf16-$ranks"/checkpoints/step-* >differences 2>&1 ||
            fail "bf16: $ranks ranks change the model: $(cat differences)"
    done
else
    echo "bf16 not tried: $(tail -n 1 plan)"
fi

for mode in train.reproducible=false train.reproducible=true; do
    for recompute in none blocks; do
        train "$recompute-$mode" 2 "$deep" "train.recompute=$recompute" "$mode" \
            train.batch=32 train.microbatch=8 train.accumulate=2 train.epochs=2
    done
    newest() { ls -d "$1/checkpoints/step-"* | tail -n 1; }
    "$build/cddp-ckpt" diff "$(newest "none-$mode")" \
        "$(newest "blocks-$mode")" >differences 2>&1 ||
        fail "$mode: recomputing changes the model: $(cat differences)"
done
exit $failed
