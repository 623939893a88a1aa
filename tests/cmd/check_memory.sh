#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The peak memory of a run with asynchronous checkpoints differs by at most 5 % from
# the total that `cddp-train --check` prints.
set -u
# shellcheck source=SCRIPTDIR/runlib.sh
. "$(dirname "$0")/runlib.sh"

"$build/cddp-data" make ising -o data --train 512 --valid 64 --shards 2 >/dev/null ||
    exit 1
cat >run.yaml <<YAML
run: {dir: run}
data: {train: "data/train-*.h5", input: {path: /spins}, target: {path: /phase}}
model: {input: [1, 32, 32], layers: [flatten, {linear: {out: 2048}}, relu,
    {linear: {out: 2048}}, relu, {linear: {out: 2}}]}
loss: cross_entropy
optimizer: {adamw: {lr: 0.001}}
train: {epochs: 1, batch: 64, threads: 1}
checkpoint: {every: 2 steps, keep: 1}
YAML

"$build/cddp-train" --check run.yaml >plan 2>&1 || fail "--check: $(cat plan)"
total=$(sed -n 's/^  total *\([0-9.]* [KMG]*i*B\)$/\1/p' plan | sed 's/iB$//; s/ //' |
    numfmt --from=iec)
"$build/cddp-train" run.yaml >run.log 2>&1 || fail "status $?: $(cat run.log)"
peak=$(sed -nE 's/^ *"peak_rss_mb": ([0-9.]+),?$/\1/p' run/summary.json)
echo "total of --check: $((total / 1000)) kB, peak: $peak MB"
awk -v total="$total" -v peak="$peak" \
    'BEGIN {exit !(peak * 1e6 <= 1.05 * total && peak * 1e6 >= 0.95 * total)}' ||
    fail "--check says $total bytes, the peak is $peak MB: $(cat plan)"
exit $failed
