#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Local checkpoints (checkpoint.local) of a run on two nodes. After the death of a
# rank, the restart in place resumes from local checkpoints. The checkpoints of the
# run directory are gone, so none of them is read. The restart also resumes if all
# local checkpoints of one node are gone. The run ends with the bits of a run that
# nothing disturbed.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
# shellcheck source=SCRIPTDIR/lifelib.sh
. "$(dirname "$0")/lifelib.sh"
life_open

set_there()
{
    compgen -G "local/cddp-*-$1/step-*/MANIFEST.json" >/dev/null
}

home_gone()
{
    rm -rf local/cddp-*-"$1" && ! compgen -G "local/cddp-*-$1" >/dev/null
}

# Start by $1 (supervise, supervise_job), and run until both nodes have a local
# checkpoint; then rank 3 is stopped.
local_begin()
{
    life_file
    at 3 ucp_tag_send_nbx STOP
    export FAULT_AFTER=$PWD/go FAULT_TEXT=go
    "$1" --set checkpoint.local="$PWD/local" \
        --set checkpoint.local_every="5 steps" \
        --set checkpoint.every=never --set fault.timeout="300 s"
    wait_until 120 set_there n1
    wait_until 120 set_there n2
    echo go >go
    wait_until 60 test -s hit
    mv run/checkpoints hidden
    expect_equal "checkpoints" "$(find hidden -name 'step-*' | wc -l)" 0
}

# Rank 3 dies, and a restart in place continues the run.
local_end()
{
    kill -KILL "$(cat hit)"
    finish 0
    expect_lines bg.err ': restart, restart in place' 1
    expect_lines run/lives.jsonl '"event":"resumed".*/local/cddp-' 1
    same_bits
    expect_equal "homes" "$(find local -name 'cddp-*' | wc -l)" 0
}

restart_in_place()
{
    local_begin supervise
    local_end
}

node_lost()
{
    local_begin supervise
    wait_until 60 home_gone "$1"
    local_end
}

# All processes of the second node and its local checkpoints are gone. The run
# goes on with the ranks of the first node, from the copies that lie there.
node_killed()
{
    local rank pid

    sbatch_options=(--no-kill)
    local_begin supervise_job
    expect_equal node "$(other_node)" n2
    trap cluster_mend EXIT
    daemon kill slurmd-n2
    for rank in 2 3; do
        pid=$(rank_pid "$rank")
        kill -KILL "$(awk '/^PPid/ {print $2}' "/proc/$pid/status")" "$pid" ||
            true # both ranks have one slurmstepd
    done
    wait_until 60 home_gone n2
    scontrol update nodename=n2 state=down reason=test
    wait_job "$job" 'COMPLETED|FAILED' 120
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_text run/lives.jsonl '"event":"begin".*"attempt":2,"nodes":"n1"'
    expect_lines run/lives.jsonl '"event":"resumed".*/local/cddp-' 1
    same_bits
}

test_case "a restart in place reads no checkpoint of the run directory" \
    restart_in_place
test_case "the local checkpoints of the first node are lost" node_lost n1
test_case "the local checkpoints of the second node are lost" node_lost n2
test_case "the second node is killed" node_killed
test_done
