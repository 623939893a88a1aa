#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Many ranks: 64 on four nodes, on a second cluster beside the one that runs
# this test. There are far fewer cores, so this tests connections, memory and
# timeouts, not speed (tests/bench/startup measures that).
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
RUN_LIMIT=300

devcluster=$SOURCE/slurm/devcluster
CDDP_DEVCLUSTER_DIR=$(mktemp -du "${TMPDIR:-/tmp}/cddp-scale-test.XXXXXX")
export CDDP_DEVCLUSTER_DIR
small_data
trap '"$devcluster" down; rm -rf "$DATA"' EXIT
many=("$devcluster" exec srun -N4 -n64 --overcommit -m block
      --mpi=pmix)

cluster_up()
{
    run 0 "$devcluster" up --nodes 4
}

# The benchmark checks every result before it measures times.
all_reduce()
{
    run 0 "${many[@]}" "$BUILD/cddp-bench" allreduce --sizes 4:256K \
        --rounds 3 --csv
    expect_text out '^262144,64,'
    expect_text out '^4,64,'
}

# The losses of an epoch are those of one rank (without batch norm, whose
# statistics depend on a rank's own samples).
one_epoch()
{
    run_file plain
    run 0 "${many[@]}" "$train" --set train.batch=128 \
        --set fault.timeout="120 s" plain.yaml
    expect_equal ranks "$(summary_field run/summary.json world_size)" 64
    expect_equal step "$(summary_field run/summary.json step)" 20
    note "64 ranks: first step $(summary_field run/summary.json \
        main_to_step_s) s after main()," \
        "$(summary_field run/summary.json peak_rss_mb) MB a rank"
    losses run/metrics.jsonl >many
    rm -r run
    run 0 "$train" --local 1 --set train.batch=128 plain.yaml
    losses run/metrics.jsonl >one
    expect_lines one . 20
    paste -d' ' one many | awk '
        {d = $2 - $4; if (d < 0) d = -d
         if ($1 != $3 || d > 1e-4 * $2) {print "step", $0; bad = 1}}
        END {exit bad}' || fail "the losses of 1 and 64 ranks differ"
}

test_case "four nodes" cluster_up
test_case "64 ranks add up" all_reduce
test_case "64 ranks train an epoch" one_epoch
test_done
