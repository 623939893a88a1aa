#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train on data with one batch that makes training diverge. With
# fault.diverge: rollback the run goes back and leaves this batch out: the
# status is 0, and the bits are the same on 1, 2 and 4 ranks. When
# fault.rollbacks is used up, the status is 70. If this build has the emulated
# GPU, the test uses that, too.
set -u
# shellcheck source=SCRIPTDIR/runlib.sh
. "$(dirname "$0")/runlib.sh"

# train STATUS DIRECTORY ARGUMENT...: do a run that must end with STATUS.
train() {
    local rc
    "$build/cddp-train" "${@:3}" --set run.dir="$2" run.yaml >"$2.log" 2>&1
    rc=$?
    [ $rc = "$1" ] || fail "$2: status $rc, not $1: $(cat "$2.log")"
}

# rollbacks NUMBER DIRECTORY: the history has NUMBER rollbacks, each with its
# reason.
rollbacks() {
    local count
    count=$(grep -c '"event":"rollback".*became.*without samples' "$2/lives.jsonl")
    [ "$count" = "$1" ] || fail "$2: $count rollbacks: $(cat "$2/lives.jsonl")"
}

/usr/bin/python3 -c '
import random, h5py
random.seed(1)
y = [random.randrange(2) for i in range(64)]
x = [[random.gauss(2 * c - 1, 1) for k in range(12)] for c in y]
x[20] = [3.4e38] * 12
with h5py.File("train.h5", "w") as f:
    f.create_dataset("x", data=x, dtype="f4")
    f.create_dataset("y", data=y, dtype="i4")
' 2>python.log || {
    echo "SKIP: python3-h5py is missing: $(tail -1 python.log)"
    exit 77
}
# The bad sample is in the 3rd of the 8 steps of an epoch.
cat >run.yaml <<'YAML'
data: {train: train.h5, input: {path: /x}, target: {path: /y}, shuffle: none}
model:
  input: [12]
  layers: [{linear: {out: 16}}, relu, {dropout: {rate: 0.1}}, {linear: {out: 2}}]
loss: cross_entropy
optimizer: {adamw: {lr: 0.01}}
train: {epochs: 3, batch: 8, reproducible: true, microbatch: 2, threads: 1}
checkpoint: {every: 2 steps}
fault: {diverge: rollback, spike: 100}
YAML

train 0 one
rollbacks 3 one
grep -q 'back to the checkpoint of step 2' one.log || fail "$(cat one.log)"
"$build/cddp-ckpt" show one/checkpoints/step-0000000024 >show.txt
[ "$(grep -c 'left out  *8 samples' show.txt)" = 3 ] || fail "$(cat show.txt)"
for ranks in 2 4; do
    train 0 ranks-$ranks --local $ranks
    rollbacks 3 ranks-$ranks
    "$build/cddp-ckpt" diff one ranks-$ranks >diff.txt 2>&1 || fail "$(cat diff.txt)"
done
train 70 four --local 2 --set train.epochs=4
rollbacks 3 four
grep -q 'the loss became.*step 27.*fault.rollbacks is 3' four.log || fail "$(cat four.log)"
train 70 stop --set fault.diverge=stop
rollbacks 0 stop

# ---- an emulated GPU -------------------------------------------------------
export CDDP_CUDA_PLUGIN=$build/.libs/libcddp_cuda_emu.so
if [ -e "$CDDP_CUDA_PLUGIN" ]; then
    gpu=(--set train.device=cuda --set train.reproducible=false)
    train 0 gpu "${gpu[@]}"
    rollbacks 3 gpu
    grep -q 'computes on cuda' gpu.log || fail "$(cat gpu.log)"
    train 70 gpu-four "${gpu[@]}" --set train.epochs=4
    rollbacks 3 gpu-four
else
    echo "this build has no CUDA: nothing ran on the emulated GPU"
fi
exit $failed
