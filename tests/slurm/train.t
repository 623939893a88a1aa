#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Training on a real Slurm: the example reaches its accuracy, the number of
# ranks hardly changes the losses, srun without options finds ./run.yaml, and
# MPI-IO gives equal bits.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
full_data
four=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)

# The last lines of the run show both numbers; the first is close to the second.
example()
{
    local accuracy bound

    ln -s "$BUILD/data" data
    run 0 "${four[@]}" "$train" --set run.dir=run "$SOURCE/examples/ising.yaml"
    accuracy=$(sed -nE 's/^final: accuracy ([0-9.]+) %.*/\1/p' out)
    bound=$(sed -nE 's/.*best possible on this data: ([0-9.]+) %.*/\1/p' out)
    note "accuracy $accuracy %, best possible $bound %"
    in_order "$(echo "$bound" | awk '{print $1 - 0.5}')" "$accuracy" ||
        fail "accuracy $accuracy % is not within 0.5 points of $bound %"
}

# losses_agree A B: the first 20 steps agree to 1e-4 relative, 50 steps to 1e-3.
# With another number of ranks sums are rounded differently, by 1e-9 in the
# first step, and the difference grows with each update, at a rate that depends
# on the CPU. A wrong denominator would show from the first step on.
losses_agree()
{
    join <(losses "$1" | sort) <(losses "$2" | sort) | awk '
        $1 <= 50 {
            n++; d = $2 - $3; if (d < 0) d = -d
            if ($1 <= 20 && d > early * $2) early = d / $2
            if (d > worst * $2) worst = d / $2
        }
        END {
            printf "# %d steps, worst relative difference %.2g, of 20 %.2g\n",
                n, worst, early
            exit !(n == 50 && early <= 1e-4 && worst <= 1e-3)
        }'
}

loss_curves()
{
    local n accuracy first

    run_file plain
    for n in 1 2 4; do
        run 0 srun -N$((n > 1 ? 2 : 1)) -n$n --mpi=pmix "$train" \
            --set run.dir=run$n plain.yaml
        accuracy=$(summary_field run$n/summary.json accuracy)
        [ $n -gt 1 ] || first=$accuracy
        echo "$first $accuracy" | awk '{d = $1 - $2; exit !(d * d <= 25e-6)}' ||
            fail "$n ranks end with accuracy $accuracy, one with $first"
    done
    losses_agree run1/metrics.jsonl run2/metrics.jsonl ||
        fail "losses of 2 ranks differ from those of one"
    losses_agree run1/metrics.jsonl run4/metrics.jsonl ||
        fail "losses of 4 ranks differ from those of one"
}

bare()
{
    run_file plain
    mv plain.yaml run.yaml
    run 0 srun --mpi=pmix "$train"
    expect_text out '^final: accuracy'
    CDDP_RUN=$PWD/run.yaml run 0 srun --mpi=pmix "$train"
    expect_text err 'resumed from'
}

local_same_as_slurm()
{
    run_file plain
    run 0 "$train" --local 2 --set run.dir=a plain.yaml
    run 0 srun -N2 -n2 --mpi=pmix "$train" --set run.dir=b plain.yaml
    losses_agree a/metrics.jsonl b/metrics.jsonl || fail "losses differ"
}

# Parallel IO in both directions: losses and checkpoint contents have equal
# bits. There are few samples, because with more ranks than cores collective IO
# waits for the scheduler at every step.
mpi_io()
{
    local newest

    need_mpi
    small_data
    run_file full
    run 0 "${four[@]}" "$train" --set run.dir=a --set train.epochs=1 full.yaml
    run 0 "${four[@]}" "$train" --set run.dir=b --set train.epochs=1 \
        --set data.validate=full \
        --set data.io=mpi --set checkpoint.io=mpi full.yaml
    losses a/metrics.jsonl >a.losses
    losses b/metrics.jsonl >b.losses
    cmp a.losses b.losses || fail "losses differ"
    newest=$(cd a/checkpoints && ls -d step-* | tail -n 1)
    run 0 "$BUILD/cddp-ckpt" diff "a/checkpoints/$newest" \
        "b/checkpoints/$newest"
    run 0 "${four[@]}" "$train" --set run.dir=b --set train.epochs=2 \
        --set data.io=mpi --set checkpoint.io=mpi full.yaml
    expect_text err "resumed from .*$newest"
}

# Ask the step of this case to stop. Fails if the controller is too busy.
step_stop()
{
    local id

    id=$(squeue -h -s -n bash -o %i | grep -v -e batch -e extern) &&
        scancel --signal=USR1 "$id"
}

# Each node copies all shards once, to a directory of its own, and removes this
# directory at the end.
staged()
{
    local node

    small_data
    run_file plain
    mkdir n1 n2
    # shellcheck disable=SC2016 # for the shell of the task
    start "${four[@]}" bash -c 'TMPDIR=$PWD/$SLURMD_NODENAME exec "$@"' - \
        "$train" --set data.io=stage --set train.epochs=1000000 plain.yaml
    for node in n1 n2; do
        wait_text 120 bg.err "all [0-9]+ files \\(.*\\) are copied to .*/$node/"
        expect_equal "directories on $node" "$(ls $node | wc -l)" 1
    done
    wait_until 60 step_stop
    finish 75
    expect_lines bg.err 'are copied to .*/n[12]/cddp-stage' 2
    expect_equal "files that are left" "$(find n1 n2 -name 'cddp*' | wc -l)" 0
}

# Several tasks write the same files as one task, also from tables and texts. A mistake
# in one task's part ends all tasks with one message. Shards that exist already end all
# tasks, too.
convert()
{
    head -c 8000000 /dev/urandom >numbers
    run 0 "$BUILD/cddp-data" convert raw --type uint8 --shape 100 --shards 7 \
        -o one x=numbers
    run 0 "${four[@]}" "$BUILD/cddp-data" convert raw --type uint8 \
        --shape 100 --shards 7 -o four x=numbers
    expect_lines out 'four: 80,000 samples of train in 7 shards' 1
    diff -r one four || fail "shards differ"
    { echo a,b; seq -f '%g,1' 150000; } >table.csv
    seq 3000 >one.txt
    seq 500 >two.txt
    for kind in "csv table.csv" "text one.txt two.txt one.txt two.txt two.txt"; do
        # shellcheck disable=SC2086
        run 0 "$BUILD/cddp-data" convert --shards 6 -o one-${kind%% *} $kind
        # shellcheck disable=SC2086
        run 0 "${four[@]}" "$BUILD/cddp-data" convert --shards 6 \
            -o four-${kind%% *} $kind
        diff -r "one-${kind%% *}" "four-${kind%% *}" || fail "shards of $kind differ"
    done
    sed -i '$s/.*/1,x/' table.csv
    run 65 "${four[@]}" "$BUILD/cddp-data" convert csv --shards 6 -o bad table.csv
    expect_lines err 'cddp-data: table.csv:150001: .*expected a number, found "x"' 1
    expect_equal "shards after a mistake" "$(find bad -type f)" ""
    run 74 "${four[@]}" "$BUILD/cddp-data" convert text -o bad one.txt none.txt one.txt
    expect_lines err 'cddp-data: .*none.txt' 1
    run 64 "${four[@]}" "$BUILD/cddp-data" convert raw --type uint8 \
        --shape 100 --shards 7 -o four x=numbers
    expect_lines err 'cddp-data: .*is there already' 1
}

test_case "examples/ising.yaml on 4 ranks of 2 nodes nears the optimum" example
test_case "1, 2 and 4 ranks have the same loss curve" loss_curves
test_case "a bare srun finds ./run.yaml, or \$CDDP_RUN" bare
test_case "--local 2 and srun -n2 train alike" local_same_as_slurm
test_case "MPI-IO reads and writes the same bits" mpi_io
test_case "with data.io: stage each node has one copy of the shards" staged
test_case "4 tasks of cddp-data convert write the same shards as one" convert
test_done
