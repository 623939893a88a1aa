#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# ZeRO-1 on a real Slurm: the bits of a run without it, also over two nodes,
# after a kill, and resumed with other numbers of ranks, with and without
# shards, from shards and from one shared file.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
# 34,000 parameters in several buckets, so that all ranks own some, and an
# optimizer that uses norms of tensors.
model='{input: [1, 32, 32], layers: [{conv: {out: 8, kernel: 3, pad: 1}},
    batchnorm, relu, {maxpool: {kernel: 4}}, flatten, {linear: {out: 64}},
    relu, {dropout: {rate: 0.2}}, {linear: {out: 2}}]}'
settings=(--set "model=$(tr '\n' ' ' <<<"$model")"
          --set checkpoint.every=never --set train.clip_norm=0.5
          --set 'optimizer={lamb: {lr: 1.0e-3}}' --set ema.decay=0.9
          --set ddp.first_bucket_mb=0.02 --set ddp.last_bucket_mb=0.02
          --set ddp.bucket_cap_mb=0.05)
tree=(--set train.reproducible=true --set train.microbatch=8
      --set train.epochs=4)

# same A B: the newest checkpoints of A and B have equal bits
same()
{
    local newest

    newest=$(cd "$1/checkpoints" && ls -d step-* | tail -n 1)
    run 0 "$BUILD/cddp-ckpt" diff "$1/checkpoints/$newest" \
        "$2/checkpoints/$newest"
}

one_node()
{
    run_file full
    run 0 srun -N1 -n2 --mpi=pmix "$train" "${settings[@]}" \
        --set run.dir=a full.yaml
    run 0 srun -N1 -n2 --mpi=pmix "$train" "${settings[@]}" \
        --set ddp.zero=1 --set run.dir=b full.yaml
    same a b
}

# SIGKILL in the middle of the run; it goes on with fewer ranks, then without
# shards.
killed()
{
    run_file full
    run 0 "$train" "${settings[@]}" "${tree[@]}" --set run.dir=a full.yaml
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        'echo $$ >pid.$SLURM_PROCID; exec "$@"' rank "$train" \
        "${settings[@]}" "${tree[@]}" --set ddp.zero=1 \
        --set checkpoint.every="5 steps" --set run.dir=e full.yaml
    wait_text 60 e/metrics.jsonl '"step": 12,'
    kill -KILL "$(cat pid.2)"
    finish nonzero
    run 0 srun -N2 -n3 --mpi=pmix "$train" "${settings[@]}" "${tree[@]}" \
        --set ddp.zero=1 --set run.dir=e full.yaml
    expect_text err 'resumed from .*written by 4 ranks'
    same a e
}

shared_file()
{
    need_mpi
    run_file full
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" "${tree[@]}" --set ddp.zero=1 \
        --set checkpoint.io=mpi --set run.dir=m full.yaml
    run 0 "$train" "${settings[@]}" "${tree[@]}" --set run.dir=a full.yaml
    same a m
}

test_case "on one node: the bits of a run without shards" one_node
test_case "killed on 4 ranks of 2 nodes, finished on 3: the same bits" killed
test_case "4 ranks write their shards into one file: the same bits" shared_file
test_done
