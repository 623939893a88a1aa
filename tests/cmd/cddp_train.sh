#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The command line of cddp-train and cddp-info: exit statuses, messages,
# --check, a small run, and that docs/CONFIG.md agrees with the option tables.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# expect STATUS PATTERN COMMAND...: PATTERN must be in the output or the errors.
expect() {
    local status=$1 pattern=$2 out found
    shift 2
    out=$("$build/$1" "${@:2}" 2>&1)
    found=$?
    if [ $found -ne "$status" ] || ! grep -qE -- "$pattern" <<<"$out"; then
        echo "FAIL: $*: expected status $status and \"$pattern\"," \
            "found status $found and: $out"
        failed=1
    fi
}

cd "$scratch" || exit 1
expect 0 'usage: cddp-train' cddp-train --help
expect 0 '^hdf5 +[0-9]' cddp-train --version
expect 0 '^features: .*pmix' cddp-info
expect 64 'unknown option --chekc' cddp-train --chekc
# What is not a regular file is refused at once, however much can be read from
# it.
CDDP_RUN=/dev/zero expect 78 'run file /dev/zero is a device; expected a YAML' \
    cddp-train --check
mkfifo fifo.yaml
expect 78 'run file fifo.yaml is a fifo; expected a YAML' cddp-train fifo.yaml
expect 64 'needs a value' cddp-train --set
expect 64 'from 1 to 1024, found "x"' cddp-train --local x
expect 64 'one run file is expected' cddp-train a.yaml b.yaml
expect 64 'exclude each other' cddp-train --fresh --resume auto
expect 0 '^prefix  /' cddp-info
expect 0 '^compiler .*[0-9]' cddp-info
expect 0 '^slurm  ' cddp-info
expect 0 '^ucx +[0-9.]+  /.*libucp' cddp-info
expect 64 'unknown option' cddp-info --nothing
expect 64 'belongs to --check' cddp-info --topology --dir x
expect 64 'found two' cddp-info --topology --check
expect 64 'unknown word "x"' cddp-info --check x
expect 69 '^finding: .*cannot write in nowhere: No such file' \
    cddp-info --check --dir nowhere
expect 0 '^1 rank on 1 host' cddp-info --topology
expect 0 '^  .*memory [0-9.]+ ' cddp-info --topology
expect 0 '^  rank 0: [0-9]+ cpus? [0-9]+.*, numa ' cddp-info --topology
# On a simulated machine whose NUMA node k has only CPU k, both lists are equal.
# On one with 512 CPUs in node 0, node 0 is the only node.
export HWLOC_THISSYSTEM=1
HWLOC_SYNTHETIC='numa:1024 pu:1' expect 0 \
    '^  rank 0: [0-9]+ cpus? ([-0-9,]+), numa \1$' cddp-info --topology
HWLOC_SYNTHETIC='numa:2 pu:512' expect 0 ', numa 0$' cddp-info --topology
unset HWLOC_THISSYSTEM
expect 0 '^allreduce +slice +any +2.n +any +halving' cddp-info --topology
expect 74 'nowhere' cddp-info --topology nowhere
expect 78 'run.yaml' cddp-train
expect 78 'CDDP_RUN|nowhere.yaml' cddp-train nowhere.yaml

"$build/cddp-data" make ising -o data/ising --train 300 --valid 100 \
    --shards 2 >/dev/null || exit 1
# Ranks that are threads do not count as processes, whatever started the
# program.
cp "$source/examples/ising-mlp.yaml" .
for io in data.io checkpoint.io; do
    expect 78 "^cddp-train: $io: mpi needs ranks that MPI knows of" \
        cddp-train --local 2 --set $io=mpi ising-mlp.yaml
    PMIX_RANK=0 expect 78 "^cddp-train: $io: mpi needs ranks that MPI knows of" \
        cddp-train --local 1 --set $io=mpi ising-mlp.yaml
done
[ ! -e runs ] || { echo "FAIL: a refused start made a directory" && failed=1; }

for example in ising ising-mlp; do
    cp "$source/examples/$example.yaml" .
    expect 0 '^linear1 +linear +[0-9]+ +[0-9,]+  plain$' \
        cddp-train --check $example.yaml
    expect 0 '300 samples in 2 shards' cddp-train --check $example.yaml
    expect 0 'steps of [0-9]+ samples' \
        cddp-train --check $example.yaml
    expect 0 '[0-9.]+ MFLOP forward, [0-9.]+ MFLOP backward' \
        cddp-train --check $example.yaml
    expect 0 'memory per rank \(3 ranks\)' \
        cddp-train --check --local 3 $example.yaml
    expect 0 'program, libraries +[0-9.]+ MiB' cddp-train --check $example.yaml
    # Micro-batches computed in parallel: their partial sums and activations
    # count.
    expect 0 'memory per rank \(2 ranks, 3 micro-batches side by side\)' \
        cddp-train --check --local 2 --set train.reproducible=true \
        --set train.threads=3 $example.yaml
    expect 0 'partial gradients +[0-9.]+ [KM]iB' \
        cddp-train --check --set train.reproducible=true $example.yaml
    expect 0 'comm hook +[0-9.]+ [KM]iB' \
        cddp-train --check --local 2 --set 'ddp.hook={powersgd: {rank: 2}}' \
        $example.yaml
    # More parameters than the memory of this host.
    expect 71 "^cddp-train: $example.yaml:[0-9]+:[0-9]+: the model has 1.378e\+11 parameters, which with their gradients take 1.0 TiB a rank, but the limit here is" \
        cddp-train --check --set 'model.layers=[linear: {out: 134217728}, linear: {out: 2}]' $example.yaml
    [ ! -e runs ] || { echo "FAIL: --check wrote something"; failed=1; }
    expect 0 '^final: accuracy [0-9.]+ %' cddp-train --local 2 \
        --set train.epochs=1 --set run.dir=run-$example $example.yaml
    expect 0 'best possible on this data' cddp-train --local 3 \
        --set train.epochs=2 --set run.dir=run-$example $example.yaml
    expect 0 'resumed from .*, 2 epochs done, written by 3 ranks' \
        cddp-train --local 2 --set train.epochs=2 --set run.dir=run-$example \
        $example.yaml
done
# A life with other settings names each changed setting once. A complete run is
# not started again with other settings, and stays as it was.
state() { (cd "$1" && find . -type f -exec sha256sum {} + | sort); }
before=$(state run-ising)
more=(--set run.dir=run-ising --set train.log_every=7 --set
    optimizer.adamw.lr=0.5 --set train.batch=64)
expect 78 'run directory run-ising is complete with another configuration \(optimizer.adamw.lr [0-9.e-]+ -> 0.5, train.batch [0-9]+ -> 64\): raise train.epochs, choose run.name, or --fresh$' \
    cddp-train --local 2 "${more[@]}" --set train.epochs=2 ising.yaml
[ "$(state run-ising)" = "$before" ] || {
    echo "FAIL: a start that was refused changed the run directory"
    failed=1
}
said=$("$build/cddp-train" --local 2 "${more[@]}" --set train.epochs=3 \
    ising.yaml 2>&1)
for change in 'optimizer.adamw.lr [0-9.e-]+ -> 0.5' 'train.batch [0-9]+ -> 64' \
    'train.epochs 2 -> 3' '.*'; do
    count=$(grep -cE "changed since step [0-9]+: $change\$" <<<"$said")
    [ "$count" = "$([ "$change" = '.*' ] && echo 3 || echo 1)" ] || {
        echo "FAIL: $change was told $count times: $said"
        failed=1
    }
done
# The run directory is the one in the run file; in a job its name may contain
# numbers of the job.
task=(SLURM_JOB_ID=121 SLURM_ARRAY_JOB_ID=120 SLURM_ARRAY_TASK_ID=3)
name=(--set run.dir= --set run.name=x)
expect 0 '^runs/x$' cddp-train --print-rundir "${name[@]}" ising.yaml
export "${task[@]}"
expect 0 '^runs/x-3$' cddp-train --print-rundir "${name[@]}" ising.yaml
expect 0 '^120_3/x$' cddp-train --print-rundir "${name[@]}" \
    --set run.dir='"{job}/{name}"' ising.yaml
unset "${task[@]%%=*}"
# One line of a sweep has a directory of its own without Slurm, too.
SLURM_ARRAY_TASK_ID=2 expect 0 '^runs/x-2$' \
    cddp-train --print-rundir "${name[@]}" ising.yaml
# The tasks of a sweep must not share a run.dir of the run file. But a line of the
# sweep, or --set, may set any run.dir.
export SLURM_ARRAY_TASK_ID=2
printf 'run.name=%s\n' a b >names.txt
printf 'run.dir=line-%s\n' 1 2 >dirs.txt
printf 'run.seed=%s\n' 1 2 >seeds.txt
picked=(cddp-train --print-rundir pick.yaml --pick)
shared='^cddp-train: pick.yaml:[0-9]+:[0-9]+: run.dir is "(.*)", which all tasks of --pick would share: write "\1-\{array\}", or leave run.dir out for runs/NAME-TASK$'
for dir in same '{name}'; do
    sed "s|^run: {|&dir: '$dir', |" ising.yaml >pick.yaml
    expect 78 "$shared" "${picked[@]}" seeds.txt
done
expect 0 '^b$' "${picked[@]}" names.txt
# --set gives all tasks one name, and so does a run file without run.name.
expect 78 "$shared" "${picked[@]}" names.txt --set run.name=one
sed -i "s|^run: {.*|run: {dir: '{name}'}|" pick.yaml
expect 78 "$shared" "${picked[@]}" seeds.txt
expect 0 '^b$' "${picked[@]}" names.txt
expect 0 '^line-2$' "${picked[@]}" dirs.txt
expect 0 '^given$' "${picked[@]}" names.txt --set run.dir=given
sed "s|^run: {|&dir: '{array}', |" ising.yaml >pick.yaml
expect 0 '^2$' "${picked[@]}" names.txt
unset SLURM_ARRAY_TASK_ID
expect 78 '^cddp-train: --set.*: run.dir is "\{jbo\}", and \{jbo\} is unknown' \
    cddp-train --set run.dir='"{jbo}"' ising.yaml
expect 78 'run.dir is "\{array\}", but this is no task of a Slurm array' \
    cddp-train --set run.dir='"{array}"' ising.yaml
expect 0 'steps of [0-9]+ samples' \
    cddp-train --check --set run.dir='"{array}"' ising.yaml
[ ! -e runs ] || { echo "FAIL: a look at a run file wrote something"; failed=1; }
# If threads spin while they have no core, a message says what helps.
policy=${OMP_WAIT_POLICY-}
unset OMP_WAIT_POLICY
many=(--set train.epochs=1 --set train.threads=$(($(nproc) + 1)))
expect 0 'train.threads is [0-9]+, but this rank has [0-9]+ cores? to itself \([0-9]+ for 1 rank\): expect it to be slower, the more so as OpenMP.s threads spin while they wait: set OMP_WAIT_POLICY=passive$' \
    cddp-train "${many[@]}" --set run.dir=run-spin ising-mlp.yaml
OMP_WAIT_POLICY=passive expect 0 'expect it to be slower$' \
    cddp-train "${many[@]}" --set run.dir=run-passive ising-mlp.yaml
[ -z "$policy" ] || export OMP_WAIT_POLICY=$policy
# On a CPU without bfloat16, `auto` computes in fp32 and says so; bf16 is
# refused.
ONEDNN_MAX_CPU_ISA=AVX2 expect 0 \
    'precision auto: fp32, as a CPU cannot multiply bfloat16' \
    cddp-train --local 2 --set train.epochs=1 --set train.precision=auto \
    --set run.dir=run-auto ising.yaml
ONEDNN_MAX_CPU_ISA=AVX2 expect 69 \
    'train.precision is bf16, but this CPU cannot multiply bfloat16' \
    cddp-train --set train.precision=bf16 --set run.dir=run-bf16 ising.yaml
# The last bits depend on the instruction set; a resume with another one says
# so.
if "$build/cddp-train" --local 1 --set train.epochs=3 \
    --set run.dir=run-ising-mlp ising-mlp.yaml 2>&1 | grep 'was made with'; then
    echo "FAIL: the same machine is told from itself"
    failed=1
fi
ONEDNN_MAX_CPU_ISA=SSE41 expect 0 \
    'was made with .*; this is .*, SSE4.1: results may differ' \
    cddp-train --local 1 --set train.epochs=4 --set run.dir=run-ising-mlp \
    ising-mlp.yaml
printf 'cddp comm table 1\nallreduce local any any any rind\n' >table
expect 78 'table, line 2: algorithm "rind" is unknown' \
    cddp-train --set run.dir=run-table --set ddp.comm_table=table ising-mlp.yaml
# A reader that reads a command's help line by line gets the last line, too.
for command in cddp-train cddp-bench cddp-ckpt cddp-data cddp-info cddp-report; do
    [ -z "$("$build/$command" --help | tail -c 1)" ] || {
        echo "FAIL: $command --help ends within a line"
        failed=1
    }
done
# A full disk is reported, even if it became full long before the end.
for command in "cddp-info --config" "cddp-info --topology" "cddp-data --help"; do
    # shellcheck disable=SC2086 # words
    said=$("$build"/$command 2>&1 >/dev/full)
    if [ $? -ne 74 ] || [[ $said != *"cannot write to standard output"* ]]; then
        echo "FAIL: $command >/dev/full: expected 74 and why, found: $said"
        failed=1
    fi
done
# If the reader of the output ends, only its lines are lost; the run goes on.
"$build/cddp-train" --set run.dir=run-pipe --set train.epochs=3 \
    ising-mlp.yaml 2>/dev/null | true
grep -q '"status": 0' run-pipe/exit.json || {
    echo "FAIL: the run ended when nobody read its output"
    failed=1
}
# The run also goes on if the disk of its output is full; with an error status
# it would be repeated.
said=$("$build/cddp-train" --set run.dir=run-full --set train.epochs=1 \
    ising-mlp.yaml 2>&1 >/dev/full)
found=$?
if [ $found -ne 0 ] || ! grep -q '"status": 0' run-full/exit.json ||
    [[ $said != *"cannot write to standard output: No space left on device; the run is complete, its numbers are in summary.json of its directory"* ]]; then
    echo "FAIL: a complete run >/dev/full: expected 0 and why, found $found: $said"
    failed=1
fi
# A reader that does not read (a stopped terminal, a full pipe) does not keep
# the run from ending, with a result or with an error.
mkfifo halted
exec 3<>halted
dd if=/dev/zero of=halted bs=1M count=1 oflag=nonblock 2>/dev/null
timeout -s KILL 60 "$build/cddp-train" --set run.dir=run-halted \
    --set train.epochs=1 ising-mlp.yaml >&3 2>&3
found=$?
timeout -s KILL 60 "$build/cddp-train" nowhere.yaml 2>&3
found+=" $?"
exec 3>&-
[ "$found" = "0 78" ] || {
    echo "FAIL: a reader that has halted: expected 0 78, found $found"
    failed=1
}
expect 78 'train.epochs.*at least|epochs.*1' cddp-train \
    --set train.epochs=0 ising.yaml
expect 64 'train.epochs|=' cddp-train --set train.epochs ising.yaml

"$build/cddp-info" --config >CONFIG.md
if ! diff -u "$source/docs/CONFIG.md" CONFIG.md; then
    echo "FAIL: docs/CONFIG.md is stale: run make docs"
    failed=1
fi
exit $failed
