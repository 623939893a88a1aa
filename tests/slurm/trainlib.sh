# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
#
# What the tests of training share, on top of lib.sh:
#   small_data              $DATA: 2,500 training samples, made once per file
#   full_data               $DATA: the example's own data, kept in $BUILD/data
#   run_file NAME           tests/slurm/runs/NAME.yaml for $DATA as ./NAME.yaml
#   losses FILE             "step loss" of each step row of a metrics.jsonl
#   summary_field FILE KEY  a number of summary.json or exit.json, as written
#   train CMD-PREFIX        name of the program: $train

train=$BUILD/cddp-train
DATA=

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
