#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Bad input under a real srun: the documented status, and one message, printed
# once.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
h5py=(/usr/bin/python3 -c)

# refuses STATUS REGEX ARG...: run on two nodes with one rank each.
refuses()
{
    local status=$1 regex=$2

    shift 2
    run "$status" srun -N2 -n2 --mpi=pmix "$train" "$@"
    expect_lines err "$regex" 1
    expect_lines err '^cddp-train: ' 1
}

# A private copy of the data, to be damaged.
own_data()
{
    cp -r "$DATA" data
    DATA=$PWD/data
    run_file plain
}

no_run_file()
{
    refuses 78 'no run file run.yaml'
    refuses 78 'nowhere.yaml' nowhere.yaml
}

syntax()
{
    printf 'run: {name: x\ndata: [\n' >bad.yaml
    refuses 78 'bad.yaml:[0-9]+:[0-9]+' bad.yaml
}

unknown_key()
{
    run_file plain
    sed -i 's/epochs: 1/epoch: 1/' plain.yaml
    refuses 78 "plain.yaml:[0-9]+:[0-9]+.*'epoch'.*'epochs'" plain.yaml
}

no_shard()
{
    run_file plain
    refuses 65 'data.train.*nowhere-\*.h5' --set data.train='nowhere-*.h5' \
        plain.yaml
}

truncated()
{
    own_data
    truncate -s -1000 data/train-01.h5
    refuses 65 'train-01.h5.*truncated' plain.yaml
}

missing_dataset()
{
    run_file plain
    refuses 65 '/spin.*(/spins)' --set data.input.path=/spin plain.yaml
}

shapes()
{
    own_data
    "${h5py[@]}" 'import h5py
with h5py.File("data/train-02.h5", "r+") as f:
    x = f["spins"][:, :16]
    del f["spins"]
    f["spins"] = x' || fail "python3-h5py is needed"
    refuses 65 'train-02.h5.*train-00.h5|train-00.h5.*train-02.h5' plain.yaml
}

label()
{
    own_data
    "${h5py[@]}" 'import h5py
with h5py.File("data/train-00.h5", "r+") as f:
    f["phase"][123] = 7' || fail "python3-h5py is needed"
    refuses 65 'train-00.h5.*123.*7' plain.yaml
}

small_batch()
{
    run_file plain
    refuses 78 'train.batch is 1' --set train.batch=1 plain.yaml
}

not_writable()
{
    run_file plain
    touch file
    refuses 74 'file/run' --set run.dir=file/run plain.yaml
}

in_use()
{
    run_file full
    start srun -N1 -n1 --mpi=pmix "$train" --set train.epochs=100000 full.yaml
    wait_text 60 run/metrics.jsonl '"step": 3,'
    refuses 73 'run directory run is in use by Slurm step' full.yaml
    scancel --signal=TERM "$(squeue -h -s -o %i | grep -v -e batch -e extern)"
    finish 75
}

other_model()
{
    run_file plain
    run 0 "$train" --set train.epochs=1 plain.yaml
    refuses 78 'another model.*linear1.weight has shape' --set \
        model.layers='[{conv: {out: 9, kernel: 3}}, flatten, {linear: {out: 2}}]' \
        plain.yaml
}

no_pmix()
{
    run_file plain
    run 78 srun -N2 -n2 --mpi=none "$train" plain.yaml
    expect_text err 'srun --mpi=pmix'
}

differing_files()
{
    run_file plain
    # shellcheck disable=SC2016 # expanded by the task
    run 78 srun -N2 -n2 --mpi=pmix bash -c \
        'exec "$0" --set run.seed=$((SLURM_PROCID + 1)) plain.yaml' "$train"
    expect_text err 'configuration of rank'
}

# task_elsewhere RANK DIR: the command with which srun starts a rank. Rank RANK
# sees DIR as ./data, through a mount in its own namespace.
task_elsewhere()
{
    # shellcheck disable=SC2016 # expanded by the task
    cat >task <<'END'
#!/bin/bash
# RANK DIR CMD...
rank=$1 elsewhere=$2
shift 2
[ "$SLURM_PROCID" = "$rank" ] || exec "$@"
exec unshare --mount bash -c 'mount --bind "$0" data && exec "$@"' \
    "$elsewhere" "$@"
END
    chmod 755 task
}

# ./data, and ./other, which rank 1 sees in place of ./data: a copy whose file
# NAME is changed by the Python code CODE (f is the file).
other_data()
{
    need unshare --mount true -- "the right to make mount namespaces"
    task_elsewhere
    own_data
    cp -r data other
    [ $# -eq 0 ] || "${h5py[@]}" "import h5py
with h5py.File('other/$1', 'r+') as f:
    $2" || fail "python3-h5py is needed"
}

# refuses_elsewhere REGEX: refused on two nodes, and on one.
refuses_elsewhere()
{
    local nodes

    for nodes in 1 2; do
        run 65 srun -N$nodes -n2 --mpi=pmix ./task 1 "$PWD/other" "$train" \
            plain.yaml
        expect_lines err "$1" 1
        expect_lines err '^cddp-train: ' 1
    done
}

other_labels()
{
    other_data train-01.h5 'f["phase"][...] = 1 - f["phase"][...]'
    refuses_elsewhere \
        'rank 1 on n[12]: data.train: .*/train-01.h5 holds other numbers in /phase here than on n[12]'
}

other_count()
{
    other_data train-02.h5 'n = f["phase"].shape[0] - 1
    for k in ("phase", "spins"):
        x = f[k][:n]
        del f[k]
        f[k] = x'
    refuses_elsewhere \
        'rank 1 on n[12]: data.train: .*/train-02.h5 holds [0-9]+ samples here, but [0-9]+ on n[12]'
}

other_valid()
{
    other_data valid-00.h5 'f["spins"][...] = -f["spins"][...]'
    refuses_elsewhere \
        'rank 1 on n[12]: data.valid: .*/valid-00.h5 holds other numbers in /spins'
}

a_copy()
{
    other_data
    run 0 srun -N2 -n2 --mpi=pmix ./task 1 "$PWD/other" "$train" \
        --set train.epochs=1 --set data.validate=full plain.yaml
}

test_case "no run file" no_run_file
test_case "YAML syntax" syntax
test_case "an unknown key" unknown_key
test_case "no shard matches" no_shard
test_case "a truncated shard" truncated
test_case "a missing dataset" missing_dataset
test_case "shapes that disagree between shards" shapes
test_case "a label out of range" label
test_case "a batch smaller than the ranks" small_batch
test_case "a run directory that cannot be written" not_writable
test_case "a run directory in use" in_use
test_case "a checkpoint of another model" other_model
test_case "srun without --mpi=pmix" no_pmix
test_case "ranks with different configurations" differing_files
test_case "a node with other labels" other_labels
test_case "a node with another number of samples" other_count
test_case "a node with other validation data" other_valid
test_case "a node with a copy of its own" a_copy
test_done
