# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
#
# What the tests of training share, on top of lib.sh:
#   small_data              $DATA: 2,500 training samples, made once per file
#   full_data               $DATA: the example's own data, kept in $BUILD/data
#   few_data                ./data/ising, where the examples look for it: 90
#                           training samples, 30 for validation, in two files
#   run_file NAME           tests/slurm/runs/NAME.yaml for $DATA as ./NAME.yaml
#   losses FILE             "step loss" of each step row of a metrics.jsonl
#   summary_field FILE KEY  a number of summary.json or exit.json, as written
#   straight_run ARG...     make the run that nobody interrupts, of full.yaml
#                           with ARG... on 4 ranks of 2 nodes, once per file; its
#                           directory is $straight
#   expect_straight_end     ./run ended with the numbers of that one
#   same_end                so it did, and has logged the same losses
#   account_home            make and enter ./home, the home of an ordinary
#                           account. This account runs commands after "${as[@]}"
#   train CMD-PREFIX        name of the program: $train

train=$BUILD/cddp-train
DATA=
straight=
# An account that every Linux has, so that none has to be made.
account=nobody
as=()

small_data()
{
    DATA=$(mktemp -d "${TMPDIR:-/tmp}/cddp-test-data.XXXXXX")
    trap 'rm -rf "$DATA"' EXIT
    "$BUILD/cddp-data" make ising -o "$DATA" --seed 11 --train 2500 \
        --valid 600 --shards 3 >/dev/null || exit 1
    chmod 755 "$DATA"
}

full_data()
{
    DATA=$BUILD/data/ising
    [ -e "$DATA/valid-01.h5" ] ||
        "$BUILD/cddp-data" make ising -o "$DATA" --force >/dev/null || exit 1
}

few_data()
{
    run 0 "$BUILD/cddp-data" make ising -o data/ising --train 90 --valid 30 \
        --shards 2
}

run_file()
{
    sed "s|DATA|$DATA|" "$SOURCE/tests/slurm/runs/$1.yaml" >"$1.yaml"
}

losses()
{
    sed -nE 's/^\{"step": ([0-9]+),.*"loss": ([^,]+),.*/\1 \2/p' "$1"
}

summary_field()
{
    sed -nE "s/^ *\"$2\": \"?([^,\"]*)\"?,?\$/\1/p" "$1"
}

straight_run()
{
    straight=$(mktemp -d "${TMPDIR:-/tmp}/cddp-straight.XXXXXX")
    trap 'rm -rf "$DATA" "$straight"' EXIT
    (
        cd "$straight" || exit 1
        run_file full
        run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" "$@" \
            full.yaml
    )
}

expect_straight_end()
{
    local key

    for key in step epoch loss accuracy; do
        expect_equal "$key" "$(summary_field run/summary.json $key)" \
            "$(summary_field "$straight/run/summary.json" $key)"
    done
}

same_end()
{
    expect_straight_end
    losses run/metrics.jsonl | sort -n >losses.run
    losses "$straight/run/metrics.jsonl" | sort -n >losses.straight
    cmp losses.run losses.straight || fail "logged losses differ"
}

# Skips the case if this machine has no such account, or the user may not become it.
account_home()
{
    local slurm

    need id "$account" -- "the account $account"
    need setpriv --reuid="$account" true -- "the right to be another account"
    slurm=$(dirname "$(command -v sbatch)")
    as=(setpriv --reuid="$account" --regid="$(id -g "$account")"
        --clear-groups env -i "HOME=$WORK/home" "PATH=$slurm:/usr/bin:/bin"
        LANG=C.UTF-8 "SLURM_CONF=$SLURM_CONF"
        "SLURM_JOB_NAME=$SLURM_JOB_NAME" "SBATCH_JOB_NAME=$SBATCH_JOB_NAME")
    mkdir home
    chown "$account" home
    cd home || return 1
}
