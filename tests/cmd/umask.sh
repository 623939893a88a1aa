#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The user's umask decides the permissions of all files in a run directory: with
# 077 nobody else can read anything, with 002 the group may write everything.
# Tested for runs, resumes, signals, rollbacks, failures and cddp-data make, on
# one and on two ranks.
set -u
# shellcheck source=SCRIPTDIR/runlib.sh
. "$(dirname "$0")/runlib.sh"

# rights MODE-OF-FILES MODE-OF-DIRECTORIES DIRECTORY LEAST: all files and
# directories in DIRECTORY have these modes, and there are at least LEAST files.
rights() {
    local wrong count
    wrong=$(find "$3" \( -type f ! -perm "$1" \) -o \( -type d ! -perm "$2" \) -o \
        ! \( -type f -o -type d \))
    [ -z "$wrong" ] || fail "$3: $(echo "$wrong" | xargs ls -ld)"
    count=$(find "$3" -type f | wc -l)
    [ "$count" -ge "$4" ] || fail "$3: only $count files: $(find "$3")"
}

# train STATUS ARGUMENT...: do a run that must end with STATUS.
train() {
    local rc
    "$build/cddp-train" "${@:2}" run.yaml >train.log 2>&1
    rc=$?
    [ $rc = "$1" ] || fail "${*:2}: status $rc, not $1: $(cat train.log)"
}

for mask in 077 002; do
    case $mask in
    077) files=600 directories=700 ;;
    002) files=664 directories=775 ;;
    esac
    umask "$mask"
    "$build/cddp-data" make ising -o data-$mask --train 24 --valid 8 --shards 1 \
        >/dev/null || exit 1
    rights "$files" "$directories" data-$mask 2
    cat >run.yaml <<YAML
data:
  train: "data-$mask/train-*.h5"
  valid: "data-$mask/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model: {input: [1, 32, 32], layers: [flatten, {linear: {out: 2}}]}
loss: cross_entropy
optimizer: sgd
train: {epochs: 1, batch: 8, threads: 1}
checkpoint: {every: 1 steps}
run: {dir: deep/er/run-$mask}
YAML
    train 0
    # A second start keeps the earlier config.yaml, and writes the metrics
    # again.
    train 0 --local 2 --set train.epochs=2
    # --fresh moves the earlier files away.
    train 0 --fresh --set train.epochs=1
    # A start that fails writes a record of the failure.
    train 70 --fresh --set train.epochs=1 --set 'optimizer={sgd: {lr: 1.0e+6}}' --set 'data.input.scale=1.0e+34'
    rights "$files" "$directories" deep/er/run-$mask 12
    for name in config.yaml lives.jsonl lock metrics.jsonl summary.json; do
        [ -f deep/er/run-$mask/$name ] || fail "no $name: $(ls deep/er/run-$mask)"
    done
    [ "$(stat -c %a deep/er)" = "$directories" ] || fail "$(ls -ld deep/er)"
    rm -rf deep
done
exit $failed
