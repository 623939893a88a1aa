#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Checkpoints of 4 ranks on 2 nodes, as one shard per rank and as one shared
# file by MPI-IO: they are read back with equal bits, by cddp, by h5py and on
# other numbers of ranks, and no rank writes much more than its share.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"

probe=$BUILD/tests/slurm/ckpt_probe
four=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)

# No rank wrote more than 2/4 of the bytes, counted by cddp and by the kernel
# (which would show an MPI library that writes everything through one rank).
shares_are_fair()
{
    expect_lines out '^rank [0-3] wrote [0-9]+ bytes of its share, ' 4
    awk '{n[$2] = $4; all += $4; m[$2] = $9; total += $9}
        END {for (r in n) if (n[r] > all / 2 || n[r] < all / 8 ||
                              m[r] > total / 2 || m[r] < 0.9 * n[r]) exit 1
             if (total > 1.2 * all) exit 1}' out ||
        fail "the ranks wrote too unequal numbers of bytes"
}

reads_back()
{
    run 0 "${four[@]}" "$probe" read "$1"
    expect_lines out 'read the same bits' 4
    run 0 srun -N2 -n3 --mpi=pmix "$probe" read "$1"
    expect_lines out 'read the same bits' 3
    run 0 "$probe" read "$1"
    expect_lines out 'read the same bits' 1
    run 0 "$BUILD/cddp-ckpt" verify "$1"/step-0000000005
}

shards()
{
    run 0 "${four[@]}" "$probe" write "$PWD/shards" shards
    shares_are_fair
    expect_file shards/step-0000000005/shard-{0,1,2,3}.h5
    reads_back "$PWD/shards"
}

shared()
{
    need_mpi
    run 0 "${four[@]}" "$probe" write "$PWD/mpi" mpi
    shares_are_fair
    expect_equal "the files" "$(cd mpi/step-0000000005 && echo *)" \
        "MANIFEST.json checkpoint.h5 shared.h5"
    reads_back "$PWD/mpi"
}

both_are_the_same()
{
    need_mpi
    run 0 "${four[@]}" "$probe" write "$PWD/shards" shards
    run 0 "${four[@]}" "$probe" write "$PWD/mpi" mpi
    run 0 "$BUILD/cddp-ckpt" diff "$PWD/shards" "$PWD/mpi"
    run 0 "${four[@]}" "$probe" write "$PWD/mpi" mpi
    run 0 "$BUILD/cddp-ckpt" diff "$PWD/shards" "$PWD/mpi"
}

h5py_reads_the_shared_file()
{
    need_mpi
    need /usr/bin/python3 -c 'import h5py' -- "python3-h5py"
    run 0 "${four[@]}" "$probe" write "$PWD/mpi" mpi
    run 0 "$probe" names "$PWD/mpi"
    mv out names
    mv mpi/step-0000000005 moved
    run 0 /usr/bin/python3 -c '
import h5py
with h5py.File("moved/checkpoint.h5", "r") as file, open("names") as names:
    for name, elems, first, last in map(str.split, names):
        data = file["/" + name][...].ravel()
        assert data.size == int(elems), name
        assert data[0] == float.fromhex(first), name
        assert data[-1] == float.fromhex(last), name
'
}

# limited KIB CMD...: run with a limit of the file size on rank 3, which acts
# like a full disk.
limited_make()
{
    cat >limited <<'END'
#!/bin/bash
trap '' XFSZ
[ "$SLURM_PROCID" != 3 ] || ulimit -f "$1"
shift
exec "$@"
END
    chmod +x limited
}

one_rank_fails()
{
    limited_make
    run 0 "${four[@]}" "$probe" write "$PWD/shards" shards
    run 74 "${four[@]}" ./limited 600 "$probe" write "$PWD/shards" shards
    expect_lines err '^rank 3 on n2: .*shard-3.h5: .*File too large' 4
    expect_equal "what is left" "$(ls -A shards)" step-0000000005
    reads_back "$PWD/shards"
}

one_rank_fails_by_mpi()
{
    need_mpi
    limited_make
    run 0 "${four[@]}" "$probe" write "$PWD/mpi" mpi
    run 74 "${four[@]}" ./limited 2000 "$probe" write "$PWD/mpi" mpi
    expect_lines err '^rank 3 on n2: shared.h5: cannot write ' 4
    expect_equal "what is left" "$(ls -A mpi)" step-0000000005
    reads_back "$PWD/mpi"
}

# hooked RUNDIR RANKS EPOCHS IO: a run with PowerSGD, which has a different
# residual on each rank, so that the checkpoint has more than the ranks have in
# common.
hooked()
{
    run 0 srun -N2 -n"$2" --mpi=pmix "$BUILD/cddp-train" \
        --set run.dir="$1" --set train.epochs="$3" --set checkpoint.io="$4" \
        --set train.batch=16 --set schedule=constant \
        --set 'ddp.hook={powersgd: {rank: 2, start_step: 2}}' \
        --set ddp.first_bucket_mb=0.001 --set ddp.last_bucket_mb=0.001 \
        "$SOURCE/examples/ising-mlp.yaml"
}

# The state of a hook is read back on each rank, also by a run that writes the
# other kind of checkpoint. With another number of ranks it is dropped, with a
# message.
hook_state()
{
    local first second

    need_mpi
    few_data
    hooked straight 4 2 independent
    for first in mpi independent; do
        second=$([ "$first" = mpi ] && echo independent || echo mpi)
        hooked "$first" 4 1 "$first"
        [ "$first" = mpi ] && expect_file mpi/checkpoints/step-0000000006/shared.h5
        cp -r "$first" "$first-3"
        hooked "$first" 4 2 "$second"
        expect_text err 'resumed|resuming'
        run 0 "$BUILD/cddp-ckpt" verify "$first/checkpoints/step-0000000012"
        run 0 "$BUILD/cddp-ckpt" diff \
            straight/checkpoints/step-0000000012 \
            "$first/checkpoints/step-0000000012"
        hooked "$first-3" 3 2 "$first"
        expect_text err 'was written by 4 ranks and this run has 3'
    done
}

# The environment that cddp-srun gives to MPI fits the MPI library. (The other
# cases do not use cddp-srun.)
supervised()
{
    need_mpi
    few_data
    PATH=$BUILD:$PATH run 0 salloc -Q -N2 -n4 --ntasks-per-node=2 --time=10 \
        cddp-srun --set run.dir=run --set train.epochs=1 --set train.batch=16 \
        --set data.io=mpi --set checkpoint.io=mpi \
        "$SOURCE/examples/ising-mlp.yaml"
    expect_file run/checkpoints/step-0000000006/shared.h5
    run 0 "$BUILD/cddp-ckpt" verify run/checkpoints/step-0000000006
    expect_lines run/lives.jsonl '"event":"begin"' 1
}

test_case "4 ranks write a shard each" shards
test_case "one rank that cannot write fails all" one_rank_fails
test_case "4 ranks write one file by MPI-IO" shared
test_case "one rank that cannot write fails all by MPI-IO" one_rank_fails_by_mpi
test_case "both hold the same bits, also written over" both_are_the_same
test_case "cddp-srun chooses MPI's component" supervised
test_case "what a comm hook keeps back comes back" hook_state
test_case "h5py reads the shared file by name" h5py_reads_the_shared_file
test_done
