#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Signals to cddp-train --local: the signals that fault.signals lists, one that
# it does not list, and the third Ctrl-C.
set -u
build=$PWD
source=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=SCRIPTDIR/waitlib.sh
. "$source/tests/cmd/waitlib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# Without job control, bash lets background processes ignore INT.
set -m

# Has [pid] taken all signals that were sent to it?
taken() {
    grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$pid/status"
}

# start NAME ARG...: start a run in the directory NAME, and wait for its first row.
start() {
    local name=$1
    shift
    "$build/cddp-train" --local 1 run.yaml --set run.dir="$name" "$@" \
        >log 2>&1 &
    pid=$!
    wait_for grep -qs '"step": 1,' "$name/metrics.jsonl"
}

# ends STATUS: the run must end with STATUS.
ends() {
    local status
    wait "$pid"
    status=$?
    [ $status -eq "$1" ] || fail "status $status, expected $1"
}

"$build/cddp-data" make ising -o data --train 128 --valid 64 --shards 1 \
    >/dev/null || exit 1
# On one thread a step takes about a second, so it does not end before three
# signals have been taken.
cat >run.yaml <<'END'
run: {name: signals}
data:
  train: "data/train-*.h5"
  valid: "data/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model:
  input: [1, 32, 32]
  layers:
    - conv: {out: 64, kernel: 3, pad: 1}
    - relu
    - conv: {out: 64, kernel: 3, pad: 1}
    - relu
    - conv: {out: 64, kernel: 3, pad: 1}
    - flatten
    - linear: {out: 2}
loss: cross_entropy
optimizer: {sgd: {lr: 1.0e-3}}
train: {epochs: 1000, batch: 128, accumulate: 8, threads: 1, eval_every: never}
checkpoint: {every: never}
END

"$build/cddp-train" --check run.yaml --set 'fault.signals=[TERM, KILL]' \
    >log 2>&1
[ $? -eq 78 ] || fail "KILL was not refused"
grep -q "fault.signals.*'KILL'.*USR1, USR2, TERM" log || fail "KILL: no sentence"

start chosen --set 'fault.signals=[USR2]'
kill -USR1 "$pid"
wait_for taken
wait_for grep -qs '"step": 2,' chosen/metrics.jsonl
kill -USR2 "$pid"
ends 75
grep -q 'asked to stop: checkpointed at step' log || fail "no checkpoint"
grep -q '"event":"signal".*"detail":"USR2"' chosen/lives.jsonl ||
    fail "USR2 is not in the history"

start term --set 'fault.signals=[USR1]'
kill -TERM "$pid"
ends 143

start impatient
for count in 1 2 3; do
    kill -INT "$pid"
    [ $count = 3 ] || wait_for taken
done
ends 130
echo "signals: all as expected"
