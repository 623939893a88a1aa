#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# A run in reproducible mode that is ended again and again, $CDDP_LIVES times
# (4; make check-long: 40): by USR1, by TERM or by SIGKILL of a random rank at a
# random time. It goes on each time with another number of ranks, and ends with
# the bits of an undisturbed run.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
lives=${CDDP_LIVES:-4}

settings=(--set train.reproducible=true --set train.microbatch=10
          --set train.epochs=$((lives * 6 + 2)) --set checkpoint.every="4 steps")

rows()
{
    cat run/metrics.jsonl 2>/dev/null | wc -l
}

grown()
{
    [ "$(rows)" -gt "$1" ] || ! kill -0 "$pid" 2>/dev/null
}

# One life of $1 ranks. It may end by itself before the signal is sent.
life()
{
    local ranks=$1 before victim how

    how=$((RANDOM % 3))
    before=$(rows)
    rm -f pid.*
    # shellcheck disable=SC2016 # expanded by the task
    start srun -N$((ranks > 1 ? 2 : 1)) -n"$ranks" --mpi=pmix bash -c \
        'echo $$ >pid.$SLURM_PROCID.tmp; mv pid.$SLURM_PROCID.tmp \
         pid.$SLURM_PROCID; exec "$@"' rank "$train" "${settings[@]}" full.yaml
    wait_until 60 grown "$before"
    sleep "0.$((RANDOM % 10))" # the random moment, not a wait for an event
    victim=$(cat pid.$((RANDOM % ranks)))
    case $how in
    0) kill -USR1 "$victim" 2>/dev/null || true ;;
    1) kill -TERM "$victim" 2>/dev/null || true ;;
    2) kill -KILL "$victim" 2>/dev/null || true ;;
    esac
    finish any
    case $how:$status in
    [01]:75 | *:0 | 2:137 | 2:76) ;;
    *) fail "a life of $ranks ranks, ended by way $how, gave $status" ;;
    esac
    note "$ranks ranks, way $how: status $status at step" \
        "$(summary_field run/summary.json step 2>/dev/null)"
}

soak()
{
    local i

    run_file full
    run 0 "$train" "${settings[@]}" --set run.dir=straight full.yaml
    for ((i = 0; i < lives; i++)); do
        life $((RANDOM % 5 + 1))
    done
    run 0 srun -N2 -n3 --mpi=pmix "$train" "${settings[@]}" full.yaml
    run 0 "$BUILD/cddp-ckpt" diff \
        "straight/checkpoints/$(cd straight/checkpoints && ls | tail -n 1)" \
        "run/checkpoints/$(cd run/checkpoints && ls -d step-* | tail -n 1)"
    losses run/metrics.jsonl | sort -n >a
    losses straight/metrics.jsonl | sort -n >b
    cmp a b || fail "logged losses differ"
}

test_case "$lives interrupted lives end with the bits of one" soak
test_done
