#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-train --local N on emulated GPUs (tests/cuda): there the ranks are
# processes, on CPUs they are threads. Processes give the same numbers as
# threads. Also: which GPUs cannot be used together, and what happens when a
# rank or the parent is killed.
set -u
build=$PWD
export CDDP_CUDA_PLUGIN=$build/.libs/libcddp_cuda_emu.so
[ -e "$CDDP_CUDA_PLUGIN" ] || {
    echo "SKIP: this build has no CUDA, so there is no $CDDP_CUDA_PLUGIN"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export OMP_NUM_THREADS=1
export UCX_TLS=self,sysv,posix,cma,tcp UCX_NET_DEVICES=lo
unset CUDA_VISIBLE_DEVICES

fail() {
    echo "FAIL: $*"
    failed=1
}

cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data --train 64 --valid 8 --shards 1 \
    >/dev/null || exit 1
cat >run.yaml <<'YAML'
data: {train: "data/train-*.h5", valid: "data/valid-*.h5",
       input: {path: /spins}, target: {path: /phase}}
model:
  input: [1, 32, 32]
  layers: [{maxpool: {kernel: 4}}, flatten, {linear: {out: 8}}, batchnorm, relu,
           {linear: {out: 2}}]
loss: cross_entropy
optimizer: {sgd: {lr: 0.01, momentum: 0.9}}
train: {epochs: 2, batch: 16, device: cuda, threads: 1, log_every: 1 }
YAML

# train STATUS NAME ARGUMENT...: do a run in directory NAME; it must end with
# STATUS.
train() {
    local status=0
    "$build/cddp-train" --set run.dir="$2" "${@:3}" run.yaml >"$2.log" 2>&1 ||
        status=$?
    [ $status = "$1" ] || fail "$2: status $status, not $1: $(cat "$2.log")"
}

# says NAME WORDS: the output of run NAME has these words.
says() {
    grep -q -e "$2" "$1.log" || fail "$1 does not say \"$2\": $(cat "$1.log")"
}

# losses DIRECTORY: steps and losses by the run's metrics.
losses() {
    grep -vE '"event": "(ranks|straggler)"' "$1/metrics.jsonl" |
        grep -oE '"(step|loss)": [^,}]*'
}

# equal A B: two runs have the same parameters and losses.
equal() {
    "$build/cddp-ckpt" diff "$1" "$2" >diff.txt 2>&1 ||
        fail "$1 and $2 differ: $(cat diff.txt)"
    cmp -s <(losses "$1") <(losses "$2") || fail "the losses of $1 and $2 differ"
}

# ---- the numbers of threads ---------------------------------------------------
export CDDP_FAKE_CUDA="devices=4"
for ranks in 2 4; do
    train 0 threads-$ranks --local $ranks --set ddp.backend=threads
    train 0 spawn-$ranks --local $ranks --set ddp.backend=ucx
    says spawn-$ranks 'computes on cuda'
    equal threads-$ranks spawn-$ranks
done
# Without graphs the bits are the same.
train 0 graphs --local 2
train 0 plain --local 2 --set train.graphs=false
says plain 'one by one: train.graphs is false'
equal graphs plain
# Backend auto makes the ranks processes if there is a GPU, else threads.
CDDP_LOG=debug train 0 auto --local 2 --set train.device=auto
says auto 'computes on cuda'
equal auto spawn-2
CUDA_VISIBLE_DEVICES='' train 0 cpu-auto --local 2 --set train.device=auto
train 0 cpu --local 2 --set train.device=cpu
equal cpu-auto cpu
! grep -q 'computes on cuda' cpu-auto.log || fail "$(cat cpu-auto.log)"

# In reproducible mode the bits are those of one rank. This is so, too, if ranks sum
# through the host, and if a run of two ranks is continued by three ranks.
fixed=(--set train.reproducible=true --set train.microbatch=2)
train 0 fixed "${fixed[@]}"
for ranks in 2 4; do
    train 0 fixed-$ranks --local $ranks "${fixed[@]}"
    equal fixed fixed-$ranks
    ! grep -q 'one by one' fixed-$ranks.log || fail "$(cat fixed-$ranks.log)"
done
train 0 fixed-ucx --local 2 "${fixed[@]}" --set ddp.backend=ucx
equal fixed fixed-ucx
says fixed-ucx 'one by one: ranks sum gradients through the host'
train 0 moved --local 2 "${fixed[@]}" --set train.epochs=1
train 0 moved --local 3 "${fixed[@]}"
says moved 'resumed from'
"$build/cddp-ckpt" diff fixed moved >diff.txt 2>&1 || fail "moved: $(cat diff.txt)"

# ---- sums of GPU memory -------------------------------------------------------
# bench RANKS BACKEND BOUND ARGUMENT...: with these arguments cddp-bench prints rows
# that have RANKS, BACKEND and, as bound_by, BOUND.
bench() {
    "$build/cddp-bench" allreduce --device cuda --csv --sizes 4:64 --rounds 2 \
        "${@:4}" >bench.csv 2>bench.err || fail "${*:4}: $(cat bench.err)"
    awk -F, -v ranks="$1" -v backend="$2" -v bound="$3" '
        NR == 1 {bad = !/^bytes,ranks,backend,device,min_us,.*,bound_us,bound_by,overlap$/; next}
        NF != 12 || $2 != ranks || $3 != backend || $4 != "cuda" || !($5 > 0) ||
            $6 < $5 || $7 < $6 || !($10 > 0) || $11 != bound ||
            !($12 >= 0 && $12 <= 1) {print "bad row: " $0; bad = 1}
        END {exit bad || NR != 4}' bench.csv || fail "${*:4}: $(cat bench.csv)"
}
bench 1 self copy
bench 1 nccl copy --backend nccl
bench 2 nccl copy --local 2
bench 2 ucx staging --local 2 --backend ucx --plain
bench 2 threads staging --local 2 --backend threads
CDDP_FAKE_CUDA="devices=1" bench 2 nccl copy --local 2 --backend nccl
grep -q 'ranks 0 and 1 on .* share a GPU' bench.err || fail "$(cat bench.err)"
CDDP_FAKE_CUDA="devices=0" "$build/cddp-bench" allreduce --device cuda --local 2 \
    >bench.csv 2>bench.err
[ $? = 69 ] || fail "no GPU: $(cat bench.err)"

# ---- GPUs that do not go together ---------------------------------------------
export CDDP_FAKE_CUDA="devices=1"
train 78 one-gpu --local 2
says one-gpu 'ranks 0 and 1 on .* compute on one GPU, GPU-'
says one-gpu 'CUDA_VISIBLE_DEVICES is not set'
says one-gpu 'train.share_gpu'
[ "$(grep -c . one-gpu.log)" = 1 ] || fail "$(cat one-gpu.log)"
train 0 shared --local 2 --set train.share_gpu=true
says shared 'ranks 0 and 1 on .* share a GPU'
equal shared spawn-2
export CDDP_FAKE_CUDA="devices=2 parts=1"
train 0 parts --local 2
says parts 'MIG 1g.18gb'
export CDDP_FAKE_CUDA="devices=2 other=1"
train 0 models --local 2
says models 'H200 (emulated) (sm_90) and rank 1, on .*A100.*the slowest'
train 78 models-reproducible --local 2 --set train.reproducible=true \
    --set train.microbatch=8
says models-reproducible 'train.reproducible is true'
export CDDP_FAKE_CUDA="devices=0"
train 69 none --local 2
says none 'train.device is cuda: '

# ---- ends -----------------------------------------------------------------------
export CDDP_FAKE_CUDA="devices=2"

# begin NAME BACKEND: start a long run of two ranks, and wait until it has
# written a checkpoint. Then $one is the process id of rank 1, and $! is that of
# the parent.
begin() {
    local at=0
    "$build/cddp-train" --local 2 --set run.dir="$1" --set train.epochs=100000 \
        --set checkpoint.every="5 steps" --set ddp.backend="$2" run.yaml \
        >"$1.log" 2>&1 &
    while ! compgen -G "$1/checkpoints/step-*" >/dev/null; do
        if ! kill -0 $! 2>/dev/null || [ $((at += 1)) -ge 12000 ]; then
            fail "$1 has not begun: $(cat "$1.log")"
            return 1
        fi
        sleep 0.01
    done
    children=$(cat /proc/$!/task/$!/children)
    one=$(awk '{ print $2 }' <<<"$children")
}

# over NAME STATUS: the run ends with STATUS, and none of its processes remains.
over() {
    local status=0 child at=0
    wait $! || status=$?
    [ $status = "$2" ] || fail "$1: status $status, not $2: $(cat "$1.log")"
    for child in $children; do
        while [ -d "/proc/$child" ] && ! grep -q ' Z ' "/proc/$child/stat" \
            2>/dev/null; do
            [ $((at += 1)) -lt 6000 ] || {
                fail "$1: process $child remains"
                return
            }
            sleep 0.01
        done
    done
}

begin killed ucx && {
    kill -9 "$one"
    over killed 76
    says killed "rank 1 (process $one) was killed by signal 9"
    says killed '^cddp-train: .*rank 1'
    grep -q '"culprit": 1' killed/exit.json || fail "$(cat killed/exit.json)"
}
begin orphans auto && {
    kill -9 $!
    over orphans 137
}
begin asked auto && {
    kill -USR1 $!
    over asked 75
}
exit $failed
