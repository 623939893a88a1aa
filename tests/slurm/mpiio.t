#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Datasets through MPI-IO: 4 ranks on 2 nodes read the bits that each rank reads
# alone, take part if they have no samples, and stop together at bad data.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"

probe=$BUILD/tests/slurm/mpiio_probe
four=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)

data()
{
    need /usr/bin/python3 -c 'import h5py' -- "python3-h5py"
    mkdir -p data
    /usr/bin/python3 "$SOURCE/tests/slurm/mpiio_data.py" data
}

same_bits()
{
    need_mpi
    data
    run 0 "${four[@]}" "$probe" read "$PWD/data/*.h5" independent 3
    sort out >independent
    run 0 "${four[@]}" "$probe" read "$PWD/data/*.h5" mpi 3
    sort out >mpi
    expect_lines mpi '^rank [0-3] samples [1-9][0-9]* ' 4
    expect_equal "the samples of all ranks" \
        "$(awk '{n += $4} END {print n}' mpi)" 218
    # The last step has one sample.
    expect_lines mpi ' empty 2 ' 3
    cmp independent mpi || fail "MPI-IO reads other bits"
}

# A step reads 18 of 109 samples, which are in few of the files. In most steps
# no rank opens a file of one sample.
untouched_shards()
{
    local turns files

    need_mpi
    data
    run 0 "${four[@]}" "$probe" read "$PWD/data/*.h5" mpi 3
    turns=$(sed -n 's/^rank 0: .* read in \(.*\) turns$/\1/p' err)
    files=$(sed -n 's/^rank 0: \(.*\) files, .*/\1/p' err)
    expect_lines err "^rank [0-3]: .* read in $turns turns$" 4
    # 2 epochs of 7 steps.
    [ "$turns" -lt $((14 * files)) ] ||
        fail "all $files files are read in all of 14 steps"
}

# MPI would also start under srun, but with a single rank.
threads()
{
    local io

    need_mpi
    run_file plain
    for io in data.io checkpoint.io; do
        run 78 srun -n1 --mpi=pmix "$train" --local 2 --set $io=mpi plain.yaml
        expect_lines err "^cddp-train: $io: mpi needs ranks that MPI knows of" 1
        [ ! -e run ] || fail "a run directory was made"
    done
}

one_rank_has_bad_data()
{
    need_mpi
    data
    # Only one rank reads the only sample of this shard.
    /usr/bin/python3 -c '
import h5py
with h5py.File("data/big-endian.h5", "r+") as file:
    file["phase"][0] = 9'
    run nonzero "${four[@]}" "$probe" read "$PWD/data/*.h5" mpi 3
    expect_lines err 'big-endian.h5: row 0 of /phase holds label 9' 1
    expect_lines err '^rank [0-3] failed$' 3
}

all_ranks_see_a_bad_shard()
{
    need_mpi
    data
    truncate -s -100 data/gzip.h5
    run 65 "${four[@]}" "$probe" read "$PWD/data/*.h5" mpi 3
    expect_lines err 'gzip.h5 is truncated' 4
}

one_node_sees_other_files()
{
    need_mpi
    data
    run 0 srun -N2 -n2 --ntasks-per-node=1 bash -c \
        "mkdir -p /dev/shm/$$ && cp data/chunked.h5 /dev/shm/$$/\$SLURM_NODEID.h5"
    run 65 "${four[@]}" "$probe" read "/dev/shm/$$/*.h5" mpi 3
    expect_lines err 'is the directory shared by all nodes' 4
    run 65 "${four[@]}" "$probe" read "/dev/shm/$$/0.h5" mpi 3
    expect_lines err 'is the directory shared by all nodes' 2
    expect_lines err 'no shard matches' 2
    run 0 srun -N2 -n2 --ntasks-per-node=1 rm -r "/dev/shm/$$"
}

# Two inputs and two targets, in several shards: all ranks read every column of
# every shard together.
several_fields()
{
    local io

    need_mpi
    few_data
    for io in independent mpi; do
        run 0 "${four[@]}" "$BUILD/cddp-train" --set data.io="$io" \
            --set run.dir="$io" --set train.epochs=2 --set train.batch=40 \
            "$SOURCE/examples/ising-two.yaml"
        grep -oE '"(loss|phase_loss|energy_loss)": [0-9.]+' \
            "$io/metrics.jsonl" >"$io.txt"
    done
    # 3 steps an epoch and its evaluation
    expect_lines mpi.txt '"energy_loss"' 8
    cmp independent.txt mpi.txt || fail "MPI-IO trains on other bits"
}

# A missing file among others, for all ranks or for some only.
files_that_are_not_there()
{
    local io

    need_mpi
    few_data
    for io in independent mpi; do
        run 65 "${four[@]}" "$BUILD/cddp-train" --set data.io="$io" \
            --set 'data.train=[data/ising/train-00.h5, data/ising/gone.h5]' \
            "$SOURCE/examples/ising.yaml"
        expect_lines err 'no shard matches data/ising/gone.h5' 1
        run 65 "${four[@]}" "$BUILD/cddp-train" --set data.io="$io" \
            --set 'data.valid=data/gone-*.h5' "$SOURCE/examples/ising.yaml"
        expect_lines err 'data.valid: no shard matches data/gone-' 1
        # shellcheck disable=SC2016 # the ranks expand it
        run 65 "${four[@]}" bash -c '[ "$SLURM_PROCID" != 2 ] || cd /
            exec "$0" --set data.io="$1" "$2"' \
            "$BUILD/cddp-train" "$io" "$SOURCE/examples/ising.yaml"
        expect_text err \
            'rank 2 .*no shard matches data/ising|ranks see other .*, or none: '
    done
}

# A file of links to others: external links, compressed or not, are read
# collectively; a virtual dataset, for which HDF5 cannot do that, is read by
# each rank alone. All give the bits of the plain file.
files_over_files()
{
    local name io

    need_mpi
    mkdir links
    run 0 "$probe" write links links 100
    for name in all links virtual; do
        for io in independent mpi; do
            run 0 "${four[@]}" "$probe" read "$PWD/links/$name.h5" $io 3
            sort out >"$name.$io"
            expect_lines "$name.$io" '^rank [0-3] samples ' 4
            cmp all.independent "$name.$io" || fail "$name, $io: other bits"
        done
    done
    rm links/b.h5
    run 65 "${four[@]}" "$probe" read "$PWD/links/virtual.h5" mpi 3
    expect_lines err 'takes values from b.h5:/spins, but there is no file' 4
}

not_built_in()
{
    ! grep -q 'define HAVE_PARALLEL_HDF5' "$BUILD/config.h" ||
        skip "a build without parallel HDF5 (configure --without-mpi)"
    run 69 "${four[@]}" "$probe" read 'data/*.h5' mpi 3
    expect_lines err 'install libhdf5-openmpi-dev' 4
}

alone()
{
    need_mpi
    run 78 "$probe" read 'data/*.h5' mpi 3
    expect_text err 'io: mpi needs ranks started by srun --mpi=pmix'
}

test_case "MPI-IO and independent reads give the same bits" same_bits
test_case "files that no rank wants are left alone" untouched_shards
test_case "MPI-IO with --local" threads
test_case "bad data on one rank ends all of them" one_rank_has_bad_data
test_case "a bad shard is named by every rank" all_ranks_see_a_bad_shard
test_case "nodes that see different files" one_node_sees_other_files
test_case "several inputs and targets" several_fields
test_case "files that are not there" files_that_are_not_there
test_case "links and virtual datasets" files_over_files
test_case "without parallel HDF5" not_built_in
test_case "MPI-IO outside a step" alone
test_done
