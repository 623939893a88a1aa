#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The commands of docs/USER.md, in their order, as a user copies them: the blocks
# that begin with ```sh (those with ```sh slurm are for tests/slurm/site.t). They make
# what the text says.
set -u
build=$PWD
guide=$(cd "${srcdir:-.}" && pwd)/docs/USER.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# h5py of the system, as in the other tests.
mkdir bin
ln -s /usr/bin/python3 bin
export PATH="$scratch/bin:$build:$PATH" OMP_WAIT_POLICY=passive

fail() {
    echo "FAIL: $*"
    cat log
    exit 1
}

if ! python3 -c 'import h5py, numpy' 2>/dev/null; then
    echo "SKIP: python3-h5py is missing: the guide cannot make its data"
    exit 77
fi
awk '/^```sh$/ {copy = 1; next} /^```/ {copy = 0} copy' "$guide" >commands
[ "$(grep -c '^cddp-' commands)" -ge 10 ] || fail "the guide has no commands"
# With -e and -v the log ends at the command that failed.
bash -evu commands >log 2>&1 || fail "a command of the guide ends with $?"

for file in report.html planet.csv runs/planet/summary.json; do
    [ -s "$file" ] || fail "the guide has not made $file"
done
grep -q 'resumed from' log || fail "the guide does not resume"
grep -q '"epoch": 12' runs/planet/summary.json || fail "not all epochs were made"
for task in 1 2 3; do
    [ -s runs/planet-$task/summary.json ] || fail "task $task has no result"
done
grep -q 'batch: 100' runs/planet-2/config.yaml || fail "task 2 has another batch"
grep -q 'have random values: linear1.bias, linear1.weight' log ||
    fail "the fine-tuning does not name its new tensors"
cddp-ckpt diff runs/planet runs/size >differs
grep -q 'model/conv1' differs && fail "the frozen layer has changed: $(cat differs)"
grep -q 'model/linear1.weight' differs || fail "there is no new layer: $(cat differs)"
grep -q 'no dataset /planet' log || fail "predictions do not say that targets are missing"
# One of 500 samples may lie on the border.
awk '/^accuracy / {found = $2}
     /^cddp says / {said = $3}
     END {
         far = found - said
         exit !(said > 0.8 && far <= 0.002001 && far >= -0.002001)
     }' log || fail "the model does not do elsewhere what it did here"
