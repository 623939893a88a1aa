#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# The reproducible mode on a real Slurm: equal bits for 1, 3 and 4 ranks, one
# node or two, one thread or several, srun or --local, and after a kill and a
# resume with other numbers of ranks and threads; rollbacks, too.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
settings=(--set train.reproducible=true --set train.microbatch=8
          --set train.epochs=8 --set checkpoint.every=never)

# same DIR: the newest checkpoint and the logged losses of DIR are those of ./a
same()
{
    local newest

    newest=$(cd a/checkpoints && ls -d step-* | tail -n 1)
    run 0 "$BUILD/cddp-ckpt" diff "a/checkpoints/$newest" \
        "$1/checkpoints/$newest"
    losses a/metrics.jsonl | sort -n >a.losses
    losses "$1/metrics.jsonl" | sort -n >"$1.losses"
    cmp a.losses "$1.losses" || fail "logged losses of $1 differ"
}

rank_counts()
{
    run_file full
    run 0 "$train" "${settings[@]}" --set run.dir=a full.yaml
    run 0 "$train" --local 2 "${settings[@]}" --set train.threads=2 \
        --set run.dir=b full.yaml
    same b
    run 0 srun -N1 -n3 --mpi=pmix "$train" "${settings[@]}" \
        --set run.dir=c full.yaml
    same c
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${settings[@]}" --set train.threads=3 --set run.dir=d full.yaml
    same d
}

# SIGKILL in the middle of the run; it goes on with fewer ranks.
killed()
{
    run_file full
    run 0 "$train" "${settings[@]}" --set run.dir=a full.yaml
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        'echo $$ >pid.$SLURM_PROCID; exec "$@"' rank "$train" \
        "${settings[@]}" --set checkpoint.every="5 steps" --set run.dir=e \
        full.yaml
    wait_text 60 e/metrics.jsonl '"step": 12,'
    kill -KILL "$(cat pid.2)"
    finish nonzero
    run 0 srun -N2 -n3 --mpi=pmix "$train" "${settings[@]}" \
        --set train.threads=2 --set run.dir=e full.yaml
    expect_text err 'resumed from .*written by 4 ranks'
    same e
}

# The loss of this model has a spike at step 25, which any threshold from 2.3 to
# 4 finds, so the run goes back once. The bits are the same on any number of ranks, also if the run is killed
# when it has just decided to go back.
rollback()
{
    local model='[flatten, {linear: {out: 16}}, relu, {dropout: {rate: 0.2}}, {linear: {out: 2}}]'
    local back=("${settings[@]}" --set "model.layers=$model"
        --set optimizer.adamw.lr=3.0e-2 --set train.epochs=6
        --set checkpoint.every="5 steps" --set fault.diverge=rollback
        --set fault.spike=3 --set run.seed=2)

    run_file full
    run 0 "$train" "${back[@]}" --set run.dir=a full.yaml
    expect_equal rollbacks "$(grep -c '"event":"rollback"' a/lives.jsonl)" 1
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" "${back[@]}" \
        --set run.dir=b full.yaml
    same b
    expect_equal rollbacks "$(grep -c '"event":"rollback"' b/lives.jsonl)" 1
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        'echo $$ >pid.$SLURM_PROCID; exec "$@"' rank "$train" "${back[@]}" \
        --set run.dir=e full.yaml
    wait_text 60 e/lives.jsonl '"event":"rollback"'
    kill -KILL "$(cat pid.2)"
    finish nonzero
    run 0 srun -N2 -n3 --mpi=pmix "$train" "${back[@]}" --set run.dir=e \
        full.yaml
    same e
}

# A run that is not reproducible predicts the same file on 1, 2 and 3 ranks, with
# the accuracy of its last evaluation; it changes nothing in the run directory.
predictions()
{
    local n accuracy

    run_file full
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        --set train.epochs=2 --set run.dir=a full.yaml
    accuracy=$(sed -n 's/^final: \(accuracy [0-9.]*\) .*/\1/p' out)
    expect_text out "^final: $accuracy %"
    find a -type f -printf '%p %s %T@\n' | sort >before
    for n in 1 2 3; do
        run 0 srun -N"$((n > 1 ? 2 : 1))" -n$n --mpi=pmix "$train" \
            --predict "out$n.h5" --set run.dir=a full.yaml
        expect_text out "^final: $accuracy %"
    done
    find a -type f -printf '%p %s %T@\n' | sort >after
    cmp before after || fail "the run directory has changed"
    cmp out1.h5 out2.h5 || fail "2 ranks: another file"
    cmp out1.h5 out3.h5 || fail "3 ranks: another file"
    [ -z "$(find . -name '*.tmp')" ] || fail "a temporary file is left"
    run 64 srun -N1 -n2 --mpi=pmix "$train" --predict out1.h5 \
        --set run.dir=a full.yaml
    expect_text err 'out1.h5 exists'
}

test_case "1, 2, 3 and 4 ranks, local or Slurm, have the same bits" rank_counts
test_case "killed on 4 ranks, finished on 3: the same bits" killed
test_case "predictions on 1, 2 and 3 ranks: the same file" predictions
test_case "rollbacks on 1, 4 and 3 ranks: the same bits" rollback
test_done
