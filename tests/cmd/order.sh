#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train on chunked data in order 2 of shuffle: chunk. A run that is resumed
# within an epoch, on any number of ranks, gives the bits of one that was not
# interrupted. Settings that would change the order within an epoch are refused
# with 78. An epoch that was begun in order 1 is finished in it.
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

# refused SENTENCE DIRECTORY ARGUMENT...: a run that must end with 78.
refused() {
    train 78 "${@:2}"
    grep -qF "$1" "$2.log" || fail "$2 does not say '$1': $(cat "$2.log")"
}

# same A B: are both checkpoints (or the last ones of both runs) equal?
same() {
    "$build/cddp-ckpt" diff "$1" "$2" >diff.txt 2>&1
}

# version NUMBER CHECKPOINT: its epoch is in this version of the order.
version() {
    grep -q "^ \"order\": {\"version\": $1, \"shuffle\": \"chunk\"" \
        "$2/MANIFEST.json" || fail "$2: $(grep '"order"' "$2/MANIFEST.json")"
}

/usr/bin/python3 -c '
import random, h5py
random.seed(1)
for name, count in (("a.h5", 40), ("b.h5", 24)):
    y = [random.randrange(2) for i in range(count)]
    x = [[random.gauss(2 * c - 1, 1) for k in range(12)] for c in y]
    with h5py.File(name, "w") as f:
        f.create_dataset("x", data=x, dtype="f4", chunks=(3, 12),
                         compression="gzip")
        f.create_dataset("y", data=y, dtype="i4")
' 2>python.log || {
    echo "SKIP: python3-h5py is missing: $(tail -1 python.log)"
    exit 77
}
# An epoch has 8 steps.
cat >run.yaml <<'YAML'
data: {train: [a.h5, b.h5], input: {path: /x}, target: {path: /y}, lanes: 4}
model:
  input: [12]
  layers: [{linear: {out: 16}}, relu, {linear: {out: 2}}]
loss: cross_entropy
optimizer: {adamw: {lr: 0.01}}
train: {epochs: 3, batch: 8, reproducible: true, microbatch: 2, threads: 1}
checkpoint: {every: 2 steps, keep: 100}
YAML
within=step-0000000012
border=step-0000000016
last=step-0000000024

# ---- one order on any number of ranks --------------------------------------

train 0 whole
version 2 whole/checkpoints/$within
for ranks in 2 3; do
    train 0 part-$ranks --local $ranks --resume whole/checkpoints/$within
    same whole part-$ranks || fail "$ranks ranks: $(cat diff.txt)"
done

# ---- settings that change the order ----------------------------------------

from=(--resume "whole/checkpoints/$within")
refused 'at sample 32 of an epoch in the order of data.lanes 4, but it is 2 now' \
    lanes "${from[@]}" --set data.lanes=2
refused 'train.batch 8, but it is 16 now' batch "${from[@]}" --set train.batch=16
refused 'data.shuffle chunk, but it is full now' full "${from[@]}" \
    --set data.shuffle=full
refused 'data.lanes 4, but it is 0 now' zero --local 2 "${from[@]}" \
    --set data.lanes=0
train 0 other --resume whole/checkpoints/$border --set data.lanes=2 \
    --set data.shuffle=full --set train.batch=16

# ---- another default -------------------------------------------------------

# lanes NUMBER CHECKPOINT: its epoch has this number of lanes.
lanes() {
    grep -q "\"lanes\": $1," "$2/MANIFEST.json" ||
        fail "$2: $(grep '"order"' "$2/MANIFEST.json")"
}

# The run file sets no number of lanes, so this version uses 8: one for each sample
# of a batch. An epoch that was begun with 4 lanes is finished with 4.
cp run.yaml chosen.yaml
sed -i 's/, lanes: 4}/}/' run.yaml
for ranks in 1 2; do
    train 0 default-$ranks --local $ranks "${from[@]}"
    grep -q 'begun with data.lanes 4 and is finished with 4; the next epochs have 8' \
        default-$ranks.log || fail "nothing about lanes: $(cat default-$ranks.log)"
    lanes 4 default-$ranks/checkpoints/step-0000000014
    lanes 8 default-$ranks/checkpoints/step-0000000018
    same whole/checkpoints/$border default-$ranks/checkpoints/$border ||
        fail "4 lanes on $ranks ranks: $(cat diff.txt)"
done
same default-1 default-2 || fail "8 lanes differ: $(cat diff.txt)"
# The default was 16 lanes in earlier versions: a run that is complete with 16 lanes
# stays complete.
train 0 complete --set data.lanes=16
train 0 complete
refused 'is complete with another configuration (data.lanes 16 -> 5)' complete \
    --set data.lanes=5
mv chosen.yaml run.yaml

# ---- an epoch in order 1 ---------------------------------------------------

train 0 old --set data.lanes=0
version 1 old/checkpoints/$within
same whole/checkpoints/$last old/checkpoints/$last &&
    fail "orders 1 and 2 train to the same bits"
for ranks in 1 2; do
    train 0 new-$ranks --local $ranks --resume old/checkpoints/$within
    version 1 new-$ranks/checkpoints/step-0000000014
    version 2 new-$ranks/checkpoints/step-0000000018
    same old/checkpoints/$border new-$ranks/checkpoints/$border ||
        fail "an old epoch on $ranks ranks: $(cat diff.txt)"
    same old/checkpoints/$last new-$ranks/checkpoints/$last &&
        fail "no new epoch on $ranks ranks"
done
same new-1 new-2 || fail "new epochs differ: $(cat diff.txt)"
exit $failed
