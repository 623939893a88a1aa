#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train on many small shards, with the calls for them counted by a preloaded
# library. At a start, each shard is opened once over all ranks, and few bytes of it
# are read. A process with fewer descriptors than shards trains, too.
# (tests/hdf5io/test_epoch_reads counts the bytes of an epoch, tests/bench/start-shards
# measures how long a start takes.)
# CDDP_LONG=1: 2000 shards and up to 64 ranks, and 20,000 shards of one sample.
set -u
# shellcheck source=SCRIPTDIR/runlib.sh
. "$(dirname "$0")/runlib.sh"
rows=4
if [ -n "${CDDP_LONG:-}" ]; then
    shards=2000 teams="1 4 16 64" singles=20000 descriptors=1024
else
    shards=160 teams="1 4 16" singles=600 descriptors=192
fi

# shards_make DIRECTORY COUNT ROWS: COUNT copies of one shard of ROWS samples.
shards_make() {
    local first names
    mkdir "$1" || exit 1
    { echo a,b,y; seq -f '%g,1,2' "$3"; } >rows.csv
    "$build/cddp-data" convert csv --target y --force -o one rows.csv >/dev/null ||
        exit 1
    for ((first = 0; first < $2; first += 500)); do
        names=$(seq -f "$1/part-%.0f.data" "$first" \
            $((first + 500 < $2 ? first + 499 : $2 - 1)))
        # shellcheck disable=SC2086
        tee $names <one/train-00.h5 >/dev/null
    done
}

# run_file SET: write SET.yaml, which trains one epoch of SET.
run_file() {
    cat >"$1.yaml" <<YAML
data: {train: "$1/*.data", input: {path: /input}, target: {path: /target}}
model: {input: [2], layers: [{linear: {out: 1}}]}
loss: mse
optimizer: {sgd: {lr: 0.001}}
train: {epochs: 1, batch: 64, threads: 1}
checkpoint: {every: never}
YAML
}

# train SET DIRECTORY RANKS: train it, or, if DIRECTORY is complete, only start; sets
# opens, reads, bytes and stats.
train() {
    local set=$1 dir=$2 ranks=$3 word
    rm -f counts
    LD_PRELOAD="$watch" IO_COUNT_FILE="$PWD/counts" IO_COUNT_SUFFIX=.data \
        "$build/cddp-train" --local "$ranks" --set run.dir="$dir" \
        "$set.yaml" >"$dir.log" 2>&1 ||
        fail "$dir, $ranks ranks: status $?: $(cat "$dir.log")"
    read -r word opens word reads word bytes word stats word <counts
}

watch=$build/tests/lib/.libs/io_watch.so
env LD_PRELOAD="$watch" IO_COUNT_FILE="$PWD/counts" "$build/cddp-train" \
    --version >version.log 2>&1
[ -s counts ] || {
    echo "SKIP: $watch cannot be preloaded: $(head -1 version.log)"
    exit 77
}
shards_make many "$shards" "$rows"
run_file many
all=$((shards * rows * (2 * 4 + 8)))

# ---- what a start opens ----------------------------------------------------

for ranks in $teams; do
    rm -f many/.cddp-index
    train many run-"$ranks" "$ranks"
    both=$opens moved=$bytes
    rm -f many/.cddp-index
    train many run-"$ranks" "$ranks"
    echo "$shards shards, $ranks ranks: a start opens $opens times, reads" \
        "$reads times ($bytes bytes) and asks $stats times; with an epoch" \
        "$both opens, $((moved - bytes)) bytes more of $all"
    grep -q 'resumed from' run-"$ranks".log || fail "run-$ranks is not complete"
    [ "$opens" -ge "$shards" ] || fail "$ranks ranks: only $opens opens"
    [ "$opens" -le $((shards + 2 * ranks)) ] ||
        fail "$ranks ranks: $opens opens at a start"
    # HDF5 opens one shard on each rank. For the other shards, the headers are read,
    # and a few numbers of each dataset.
    [ "$reads" -le $((4 * shards + 16 * ranks)) ] ||
        fail "$ranks ranks: $reads reads at a start"
    # Rank 0 has written an index.
    train many run-"$ranks" "$ranks"
    echo "$ranks ranks, with an index: $opens opens, $reads reads, $stats stats"
    [ "$opens" -le $((2 * ranks)) ] || fail "$ranks ranks: $opens opens with an index"
done

# ---- an index --------------------------------------------------------------

# A shard that changed is opened, and the index is written again.
touch -d '2001-01-01' many/part-7.data
train many run-1 1
[ "$opens" = 1 ] || fail "one shard changed, $opens opens"
train many run-1 1
[ "$opens" = 0 ] || fail "no shard changed, $opens opens"
# Copies with the same times are other files, so all are opened, and the index is
# written again.
cp -a many copy
rm -r many
mv copy many
train many run-1 1
[ "$opens" = "$shards" ] || fail "$opens opens of a copy with its index"
train many run-1 1
[ "$opens" = 0 ] || fail "$opens opens of a copy with an index of its own"
# A damaged index is not used, and one line says so.
[ "$(dd if=many/.cddp-index bs=1 skip=100 count=1 status=none)" = x ] &&
    other=y || other=x
printf $other | dd of=many/.cddp-index bs=1 seek=100 conv=notrunc status=none
train many run-4 4
[ "$(grep -c 'many/.cddp-index is not used: its hash is not' run-4.log)" = 1 ] ||
    fail "a damaged index: $(cat run-4.log)"
[ "$opens" -ge "$shards" ] || fail "$opens opens with a damaged index"
# An index of other files is not used.
shards_make other "$shards" 5
cp many/.cddp-index other/
run_file other
train other run-other 1
tr -d , <run-other.log | grep -q "data: $((shards * 5)) samples" || fail "$(cat run-other.log)"
[ "$opens" -ge "$shards" ] || fail "$opens opens with the index of other files"
# For few shards no index is written.
shards_make few 20 1
run_file few
train few run-few 1
[ ! -e few/.cddp-index ] || fail "an index of 20 shards"

# ---- cddp-data index -------------------------------------------------------

# index STATUS ARGUMENT...: cddp-data index must end with STATUS.
index() {
    "$build/cddp-data" index "${@:2}" >index.log 2>&1
    [ $? = "$1" ] || fail "index ${*:2}: $(cat index.log)"
}

index 0 --input /input --target /target few/*.data
grep -qx '20 shards' index.log || fail "index: $(cat index.log)"
train few run-few 1
[ "$opens" = 0 ] || fail "$opens opens with an index of cddp-data"
index 65 --input /input --target /none few/*.data
index 65 --input /input --target /target few # no *.h5
index 65 --input /input --target /target few/*.data other/*.data
index 64 --input /input few/*.data
index 64 --target /target few/*.data
index 64 --input /input --target /target
train few run-few 1
[ "$opens" = 0 ] || fail "$opens opens after calls that failed"
for file in few/*.data; do
    mv "$file" "${file%.data}.h5"
done
index 0 --input /input --target /target few

# kind_check SET OPTION...: the present index is for another kind of run, so a run
# opens the 20 files. With an index that was made with OPTION, a run opens none.
kind_check() {
    local set=$1
    shift
    train "$set" run-"$set" 1
    [ "$opens" -ge 20 ] || fail "$set: $opens opens with the index of another kind"
    index 0 "$@" "$set"/*.data
    train "$set" run-"$set" 1
    [ "$opens" = 0 ] || fail "$set: $opens opens with an index"
}

# Each file is one sample: index --files.
shards_make whole 20 4
cat >whole.yaml <<YAML
data: {train: "whole/*.data", samples: files, input: {path: /input}, target: {path: /target}}
model: {input: [4, 2], layers: [flatten, {linear: {out: 4}}]}
loss: mse
optimizer: {sgd: {lr: 0.001}}
train: {epochs: 1, batch: 20, threads: 1}
checkpoint: {every: never}
YAML
index 0 --input /input --target /target whole/*.data
kind_check whole --input /input --target /target --files

# Each file is a stream: index --sequence.
mkdir stream
seq 200 >words.txt
"$build/cddp-data" convert text -o texts words.txt >/dev/null || exit 1
for ((i = 0; i < 20; i++)); do
    cp texts/train-00.h5 stream/part-$i.data
done
cat >stream.yaml <<YAML
data: {train: "stream/*.data", sequence: 8, input: {path: /tokens}}
model: {input: [8], layers: [{embedding: {vocabulary: 256, out: 4}}, {linear: {out: 256, flatten: false}}]}
loss: cross_entropy
optimizer: {sgd: {lr: 0.001}}
train: {epochs: 1, batch: 64, threads: 1}
checkpoint: {every: never}
YAML
index 0 --input /tokens --sequence 9 stream/*.data
kind_check stream --input /tokens --sequence 8
index 64 --sequence 8 stream/*.data
index 64 --input /tokens --sequence 0 stream/*.data
index 65 --input /none --sequence 8 stream/*.data

# ---- more shards than descriptors ------------------------------------------

shards_make single "$singles" 1
run_file single
(
    ulimit -n "$descriptors" || exit 1
    train single run-single 2
    echo "$singles shards with $descriptors descriptors: $opens opens"
    exit $failed
) || failed=1
exit $failed
