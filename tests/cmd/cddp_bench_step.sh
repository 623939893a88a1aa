#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-bench step: rows, scaling, paced rounds, and a record that can be read
# back.
set -eu
trap 'rm -f step.$$ step.$$.yaml step.$$.st' EXIT
cat >step.$$.yaml <<'YAML'
run: {name: small, seed: 1}
data: {train: [], input: {path: /x}, target: {path: /y}}
model:
  input: [2, 6, 6]
  layers:
    - conv: {out: 4, kernel: 3}
    - batchnorm
    - relu
    - linear: {out: 3}
loss: cross_entropy
optimizer: {sgd: {lr: 0.05}}
train: {batch: 8}
YAML

# rows RANKS:BATCH ... -- ARGUMENTS
rows() {
    local expected=
    while [ "$1" != -- ]; do
        expected+="$1 "
        shift
    done
    shift
    ./cddp-bench step --csv --steps 3 --warm-up 1 "$@" step.$$.yaml >step.$$
    [ "$(head -1 step.$$ | tr , '\n' | wc -l)" = 21 ]
    tail -n +2 step.$$ | awk -F, -v expected="$expected" '
        NF != 21 || $21 != "cpu" || $1 != "small" || $6 != 3 || !($7 > 0) || $8 < $7 ||
            $9 < $8 || !($12 > 0) || !($13 > 0) || !($14 > 0) || !($16 > 0) ||
            !($19 > 0) || $20 !~ /^[0-9.]+$/ || $20 > $9 {print "bad row: " $0; bad = 1}
        {found = found $4 ":" $3 " "}
        END {exit bad || found != expected}'
}

rows 1:8 --
rows 3:8 -- --local 3
rows 1:8 2:16 3:24 -- --local 3 --scaling weak
rows 1:4 2:4 -- --local 2 --scaling strong --set train.batch=4

[ "$(printf '\n\n\n' | ./cddp-bench step --paced --steps 2 --warm-up 0 \
    --record step.$$.st step.$$.yaml | awk '$1 > 0' | wc -l)" = 3 ]
python3 - step.$$.st <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length, = struct.unpack("<Q", data[:8])
table = json.loads(data[8:8 + length])
assert table["conv1.weight"]["shape"] == [4, 2, 3, 3], table
assert table["input"]["shape"] == [8, 2, 6, 6], table
assert table["target"]["dtype"] == "I64", table
ends = [entry["data_offsets"][1] for entry in table.values()]
assert max(ends) == len(data) - 8 - length, table
first, last = table["losses"]["data_offsets"]
losses = struct.unpack("<5d", data[8 + length + first:8 + length + last])
assert 0.3 < losses[0] < 3 and losses[4] < losses[0], losses
PYTHON

if ./cddp-bench step --scaling weak step.$$.yaml 2>step.$$; then exit 1; fi
grep -q -- --local step.$$
if ./cddp-bench step 2>step.$$; then exit 1; fi
grep -q 'run file' step.$$
if ./cddp-bench step --local 9 step.$$.yaml >/dev/null 2>step.$$; then
    exit 1
fi
grep -q 'train.batch is 8' step.$$

# On an emulated GPU.
plugin=$PWD/.libs/libcddp_cuda_emu.so
if [ -e "$plugin" ]; then
    CDDP_CUDA_PLUGIN=$plugin ./cddp-bench step --csv --steps 2 --warm-up 1 \
        --device cuda step.$$.yaml >step.$$ 2>/dev/null
    tail -n 1 step.$$ | awk -F, '
        $1 == "small" && $8 > 0 && $12 > 0 && $13 > 0 && $21 == "cuda" {row = 1}
        END {exit !row}'
else
    echo "not tested on an emulated GPU: there is no $plugin"
fi
if ./cddp-bench step --device gpu step.$$.yaml 2>step.$$; then exit 1; fi
grep -q -- --device step.$$
