#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# What a run writes for TensorBoard and Prometheus, over a kill and a resume. With
# promtool in PATH its check must be clean; with CDDP_TENSORBOARD=PYTHON, a Python
# that has the package tensorboard, its reader must find the numbers of
# metrics.jsonl. Without them these two parts are skipped.
set -u
build=$PWD
source=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=SCRIPTDIR/waitlib.sh
. "$source/tests/cmd/waitlib.sh"
scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

start() {
    "$build/cddp-train" --local 2 run.yaml >log 2>&1 &
    pid=$!
}

# ends STATUS: the run must end with it.
ends() {
    local status
    wait "$pid"
    status=$?
    pid=
    [ $status -eq "$1" ] || fail "status $status, expected $1"
}

# checkpoints COUNT: metrics.jsonl has at least that many.
checkpoints() {
    [ "$(grep -cs '"event": "checkpoint"' run/metrics.jsonl)" -ge "$1" ]
}

# Both ranks have a file, whose first version is of the first step.
both() {
    [ "$(find textfiles -name 'cddp-*.prom' | wc -l)" -eq 2 ]
}

"$build/cddp-data" make ising -o data --train 128 --valid 64 --shards 1 \
    >/dev/null || exit 1
mkdir textfiles
cat >run.yaml <<'END'
run: {name: record, dir: run}
data:
  train: "data/train-*.h5"
  valid: "data/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model:
  input: [1, 32, 32]
  layers: [flatten, {linear: {out: 16}}, relu, {linear: {out: 2}}]
loss: cross_entropy
optimizer: {sgd: {lr: 1.0e-3}}
train: {epochs: 100000, batch: 8, threads: 1, eval_every: 20 steps}
checkpoint: {every: 24 steps}
obs: {every: 1 s, prometheus: textfiles}
END

start
wait_for both
cat textfiles/*.prom >first.prom
for rank in 0 1; do
    grep -q "^cddp_step{job=\"\",rank=\"$rank\",run=\"record\"} [0-9]*$" first.prom ||
        fail "no step of rank $rank: $(cat first.prom)"
done
wait_for checkpoints 3
kill -9 "$pid"
ends 137
both || fail "the files of the killed run are gone: $(ls -a textfiles)"

start
wait_for grep -q '"event": "resume"' run/metrics.jsonl
wait_for checkpoints 6
kill -USR1 "$pid"
ends 75
[ -z "$(ls -A textfiles)" ] || fail "files stay: $(ls -A textfiles)"

if command -v promtool >/dev/null; then
    # of one rank: a name may have only one HELP in a file
    sed '2,$ {/^# HELP cddp_step /,$ d}' first.prom >one.prom
    promtool check metrics <one.prom >check.txt 2>&1 ||
        fail "promtool: $(cat check.txt one.prom)"
    [ ! -s check.txt ] || fail "promtool: $(cat check.txt one.prom)"
    echo "promtool check metrics: clean"
else
    echo "SKIP: promtool (Debian package prometheus) is missing: metrics were not checked"
fi

if ! "$build/cddp-info" | grep -q 'TensorBoard files yes'; then
    echo "SKIP: libprotobuf-c or ISA-L is missing: this build has no TensorBoard files"
    [ ! -e run/tb ] || fail "there is a run/tb"
    "$build/cddp-train" --local 2 run.yaml --set obs.tensorboard=true >log 2>&1
    [ $? -eq 78 ] || fail "obs.tensorboard was not refused"
    grep -q 'obs.tensorboard.*libprotobuf-c' log || fail "no sentence"
    exit 0
fi
[ "$(find run/tb -type f | wc -l)" -eq 2 ] || fail "not a file for each start"
"${CDDP_TENSORBOARD:-python3}" "$source/tests/python/check_tensorboard.py" run >tb.txt
case $? in
0 | 77) cat tb.txt ;;
*) fail "$(cat tb.txt)" ;;
esac
