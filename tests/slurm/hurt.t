#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Faults in the surroundings of a run: memory, disks, other files on one node, a
# second run in its directory, a wrong network, damaged data. Each case checks
# the exit status and the sentence. Where the fault can be mended, the run then
# ends with the bits of the undisturbed run. fault_errno.c makes calls fail.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
small_data
point=$BUILD/tests/slurm/.libs/fault_errno.so
h5py=(/usr/bin/python3 -c)
# With these settings the bits are the same on any number of ranks and nodes,
# and a read that fails is tried again within 2 s. Checkpoints are written between
# two steps, so that the cases can say which step comes next.
settings=(--set train.reproducible=true --set train.microbatch=10
          --set train.epochs=1 --set checkpoint.every="10 steps"
          --set fault.io_timeout="8 s" --set train.threads=1
          --set checkpoint.async=false)
last=checkpoints/step-0000000042

on_two=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)

# The last checkpoint must equal that of the undisturbed run.
same_bits()
{
    [ -d "$straight/run/$last" ] || fail "the undisturbed run is missing"
    run 0 "$BUILD/cddp-ckpt" diff "$straight/run/$last" "run/$last"
}

# armed VARIABLE=VALUE...: make ./armed, which a task starts in place of the
# program, with these variables in the environment of every rank.
armed()
{
    {
        echo '#!/bin/bash'
        printf 'export %q\n' "$@"
        printf 'exec env LD_PRELOAD=%q %q "$@"\n' "$point" "$train"
    } >armed
    chmod 755 armed
}

# batch ARG...: submit the template with ./full.yaml. If ./armed exists, the job
# uses it as its program.
batch()
{
    mkdir -p bin
    [ ! -e armed ] || ln -sf ../armed bin/cddp-train
    PATH=$PWD/bin:$BUILD:$PATH submit --output="${log:-job.out}" "$@" \
        "$SOURCE/slurm/batch/train.sbatch" "${settings[@]}" full.yaml
}

batch_ends()
{
    wait_job "$job" "COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL" 600
    expect_equal "state" "$(job_field "$job" JobState)" "$1"
    expect_equal "exit code" "$(job_field "$job" ExitCode)" "$2"
    expect_equal "restarts" "$(job_field "$job" Restarts)" 0
}

# in_node NODE CMD...: run CMD in the mount namespace of a node. Paths must be
# absolute, because the current directory stays in the namespace of this script.
in_node()
{
    local daemon

    daemon=$(cat "$CDDP_DEVCLUSTER_DIR/pid/slurmd-$1")
    shift
    nsenter --target "$daemon" --mount -- "$@"
}

begins()
{
    expect_lines run/lives.jsonl '"event":"begin"' "$1"
}

# ---- memory -----------------------------------------------------------------

# Make a cgroup with a limit of 512 MiB; $cgroup is its directory.
cgroup_make()
{
    local first=/sys/fs/cgroup/memory second=/sys/fs/cgroup

    if [ -f "$first/memory.limit_in_bytes" ]; then
        cgroup=$first/cddp-hurt-$$
        mkdir "$cgroup" 2>/dev/null || return 1
        echo 512M >"$cgroup/memory.limit_in_bytes" || return 1
        echo 512M 2>/dev/null >"$cgroup/memory.memsw.limit_in_bytes" || true
    else
        grep -qs memory $second/cgroup.subtree_control || return 1
        cgroup=$second/cddp-hurt-$$
        mkdir "$cgroup" 2>/dev/null || return 1
        echo 512M >"$cgroup/memory.max" || return 1
        echo 0 2>/dev/null >"$cgroup/memory.swap.max" || true
    fi
}

cgroup_gone()
{
    rmdir "$cgroup" 2>/dev/null
}

# Both ranks of n2 are in this cgroup, like the ranks of a step; rank 3 takes
# more memory than its limit.
over_memory()
{
    cgroup=
    cgroup_make || skip "the right to make a cgroup that limits memory"
    trap 'cgroup_gone || true' EXIT
    run_file full
    armed FAULT_RANK=3 FAULT_CALL=pread:train-02.h5 FAULT_COUNT=100 \
        FAULT_ERRNO=eat FAULT_HIT="$PWD/hit"
    sed -i "2i [ \"\$SLURM_PROCID\" -lt 2 ] || echo \$\$ >$cgroup/cgroup.procs" \
        armed
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends FAILED 71:0
    expect_text job.out 'rank 3 on n2 was killed: out of memory: .*limit is 512.0 MiB .*oom_kill 1'
    expect_equal status "$(summary_field run/exit.json status)" 71
    expect_equal culprit "$(summary_field run/exit.json culprit)" 3
    expect_text run/exit.json '"cause": "out of memory: .*512.0 MiB.*oom_kill 1"'
    begins 1
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    same_bits
    wait_until 20 cgroup_gone
}

# The ranks of a node together need more memory than the job has on it.
over_the_job()
{
    run_file full
    run 71 "${on_two[@]}" env SLURM_MEM_PER_NODE=64 "$train" \
        --set model.layers='[flatten, {linear: {out: 5000}}, {linear: {out: 2}}]' \
        full.yaml
    expect_text err 'for the 2 ranks of this node, but the limit here is 64.0 MiB .SLURM_MEM_PER_NODE.'
    expect_lines err '^cddp-train: ' 1
}

# ---- disks ------------------------------------------------------------------

# The run directory is a file system of its own. Other files fill it, so that
# there is no room for checkpoints. After the third one that fails the job ends
# without a restart; when there is room again, the next job goes on.
disk_full()
{
    need in_node n1 true -- "nodes with mounts of their own"
    run_file full
    mkdir run
    in_node n1 mount -t tmpfs -o size=4M,mode=777 none "$PWD/run"
    trap 'in_node n1 umount -l "$PWD/run"' EXIT
    in_node n1 sh -c 'head -c 100M /dev/zero >"$0" 2>/dev/null
        truncate -s -100K "$0"' "$PWD/run/filler"
    batch -N1 -n4 --ntasks-per-node=4 -w n1
    batch_ends FAILED 74:0
    expect_text job.out 'No space left on device.*; failure 2 of 3 in a row'
    expect_lines job.out 'the job ends with 74: waiting makes no room' 1
    expect_no_text job.out 'restart in place|requeue'
    in_node n1 rm "$PWD/run/filler"
    batch -N1 -n4 --ntasks-per-node=4 -w n1
    batch_ends COMPLETED 0:0
    mkdir copy
    in_node n1 tar -C "$PWD" -cf - run/$last | tar -C copy -xf -
    run 0 "$BUILD/cddp-ckpt" diff "$straight/run/$last" "copy/run/$last"
}

# The quota is still exceeded when the run tries again. Waiting does not help
# against that, so the step is not started again.
quota()
{
    run_file full
    armed FAULT_RANK=3 FAULT_CALL=fsync:shard-3.h5 FAULT_ERRNO=122 \
        FAULT_TIMES=0 FAULT_HIT="$PWD/hit"
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends FAILED 74:0
    expect_lines job.out 'Disk quota exceeded; failure [12] of 3 in a row' 2
    expect_text job.out 'Disk quota exceeded; no checkpoint was written 3 times'
    expect_lines job.out 'the job ends with 74' 1
    begins 1
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    same_bits
}

# write_error NUMBER TEXT: two checkpoints in a row fail with errno NUMBER. The
# run goes on and tries again.
write_error()
{
    run_file full
    armed FAULT_RANK=3 FAULT_CALL=fsync:shard-3.h5 FAULT_ERRNO="$1" \
        FAULT_TIMES=2
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    expect_lines job.out "$2; failure [12] of 3 in a row" 2
    expect_text job.out 'failure 1 of .*the run goes on and tries again at step 13'
    expect_no_text job.out 'restart in place|requeue'
    expect_lines run/metrics.jsonl '"event": "checkpoint_failed"' 2
    begins 1
    expect_text run/metrics.jsonl '"event": "checkpoint", "step": 16,'
    same_bits
}

# After three errors in a row the run ends. They may pass, so the step is started
# again.
write_error_stays()
{
    run_file full
    armed FAULT_RANK=3 FAULT_CALL=fsync:shard-3.h5 FAULT_ERRNO=5 \
        FAULT_TIMES=0 FAULT_HIT="$PWD/hit"
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    expect_text job.out 'Input/output error; no checkpoint was written 3 times'
    expect_lines job.out 'restart, restart in place' 1
    begins 2
    same_bits
}

# read_error NUMBER TEXT: two reads in a row fail with errno NUMBER, which the
# output calls TEXT.
read_error()
{
    run_file full
    armed FAULT_RANK=2 FAULT_CALL=pread:train-01.h5 FAULT_COUNT=100 \
        FAULT_TIMES=2 FAULT_ERRNO="$1"
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix ./armed \
        "${settings[@]}" full.yaml
    expect_text err "cannot read .*train-01.h5 at byte [0-9]+: $2: trying again in [0-9.]+ s \\(1 of 3\\)\$"
    expect_text err "cannot (read|open) .*train-01.h5.*: $2: trying again in [0-9.]+ s \\(2 of 3\\)\$"
    begins 1
    same_bits
}

# All later reads fail: the file is read again as often as fault.io_retries
# says.
read_error_stays()
{
    run_file full
    armed FAULT_RANK=2 FAULT_CALL=pread:train-01.h5 FAULT_COUNT=100 \
        FAULT_TIMES=0 FAULT_ERRNO=116
    run 74 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix ./armed \
        "${settings[@]}" --set fault.io_retries=1 full.yaml
    expect_text err 'train-01.h5.*Stale file handle; it was opened and read 1 more times'
    expect_lines err '^cddp-train: ' 1
    expect_equal status "$(summary_field run/exit.json status)" 74
    run 0 "${on_two[@]}" "$train" "${settings[@]}" full.yaml
    same_bits
}

# One node may not read a file, as on a file system where root has no rights.
read_forbidden()
{
    run_file full
    # Rank 3 looks at this shard for both ranks of the node.
    armed FAULT_RANK=3 FAULT_CALL=pread:train-01.h5 FAULT_TIMES=0 FAULT_ERRNO=13
    run 65 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix ./armed \
        "${settings[@]}" full.yaml
    expect_text err "^cddp-train: rank 3 on n2: data.train: cannot read .*train-01.h5: Permission denied: it belongs to $(id -un) .uid $UID., has mode [0-7]{4}, and this process runs as $(id -un) .uid $UID.: let its owner make it readable"
    expect_lines err '^cddp-train: ' 1
    [ ! -e run ] || fail "a refused start left files"
}

# ---- other files on one node --------------------------------------------------

# elsewhere FILE OTHER: make ./task, in which rank 3 sees OTHER in place of
# FILE.
elsewhere()
{
    need unshare --mount true -- "the right to make mount namespaces"
    # shellcheck disable=SC2016 # expanded by the task
    cat >task <<'END'
#!/bin/bash
# FILE OTHER CMD...
file=$1 other=$2
shift 2
[ "$SLURM_PROCID" = 3 ] || exec "$@"
exec unshare --mount bash -c 'mount --bind "$0" "$1" && shift && exec "$@"' \
    "$other" "$file" "$@"
END
    chmod 755 task
}

other_build()
{
    local id

    run_file full
    cp "$train" mine
    id=$("$train" --version | sed -nE 's/.*\(build ([^)]*)\).*/\1/p')
    [ -n "$id" ] || fail "no build id in: $("$train" --version)"
    LC_ALL=C sed "s/$id/$(tr '0-9a-f' '1-9a-f0' <<<"$id")/g" mine >other
    chmod 755 mine other
    cmp -s mine other && fail "the build id is not in the program"
    elsewhere
    run 78 "${on_two[@]}" ./task "$PWD/mine" "$PWD/other" ./mine full.yaml
    expect_lines err 'cddp build of rank 3 .*host n2' 1
    [ ! -e run ] || fail "a refused start left files"
}

other_plugin()
{
    local flags=(-shared -fPIC -I"$SOURCE/include" -I"$BUILD/include")

    run_file plain
    gcc "${flags[@]}" -O2 -o mine.so "$SOURCE/examples/c/plugin.c" -lm
    gcc "${flags[@]}" -O1 -o other.so "$SOURCE/examples/c/plugin.c" -lm
    elsewhere
    run 78 "${on_two[@]}" ./task "$PWD/mine.so" "$PWD/other.so" "$train" --set \
        model='{plugin: ./mine.so, input: [1, 32, 32], classes: 2}' plain.yaml
    expect_lines err 'model.plugin of rank 3 .*host n2' 1
    [ ! -e run ] || fail "a refused start left files"
    run 0 "${on_two[@]}" "$train" --set \
        model='{plugin: ./mine.so, input: [1, 32, 32], classes: 2}' plain.yaml
}

other_run_file()
{
    run_file full
    sed 's/seed: 5/seed: 6/' full.yaml >other.yaml
    elsewhere
    run 78 "${on_two[@]}" ./task "$PWD/full.yaml" "$PWD/other.yaml" "$train" \
        full.yaml
    expect_lines err 'configuration of rank 3 .*host n2' 1
    [ ! -e run ] || fail "a refused start left files"
}

# ---- a second run ---------------------------------------------------------------

tree()
{
    (cd run && find . -type f -exec sha256sum {} + | sort)
}

# Set $step to the step of the first run; fails if the controller is too busy.
step_find()
{
    step=$(squeue -h -s -n "$SLURM_JOB_NAME,armed" -o %i |
        grep -v -e batch -e extern)
}

# The first run is stopped, so that its files do not change. Then the same run
# is submitted a second time.
twice()
{
    local before first step

    run_file full
    armed FAULT_RANK=0 FAULT_STOP=1500 FAULT_STOPPED="$PWD/stopped" "$@"
    start srun -N1 -n1 -w n1 --mpi=pmix ./armed "${settings[@]}" full.yaml
    wait_until 120 test -e stopped
    wait_until 60 step_find
    first=$(task_pid "${step%.*}" 0 cddp-train)
    wait_until 60 grep -q '^State:.T' "/proc/$first/status"
    before=$(tree)
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends FAILED 73:0
    expect_lines job.out 'run directory run is in use by Slurm step .* on host n1' 1
    expect_equal tree "$(tree)" "$before"
    scancel --signal=TERM "$step"
    kill -CONT "$first"
    finish 75
    # The first run has ended, so the directory is free.
    rm job.out
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    same_bits
}

without_locks()
{
    twice FAULT_CALL=lock FAULT_TIMES=0 FAULT_ERRNO=37
    expect_text bg.err 'cannot be locked \(No locks available\)'
}

# ---- output -----------------------------------------------------------------------

output_closed()
{
    run_file full
    printf '#!/bin/bash\nexec >&- 2>&-\nexec cddp-srun "$@"\n' >closed
    PATH=$BUILD:$PATH submit -N2 -n4 --ntasks-per-node=2 --output=/dev/full \
        closed "${settings[@]}" full.yaml
    batch_ends COMPLETED 0:0
    same_bits
}

log_full()
{
    run_file full
    log=/dev/full batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    same_bits
}

metrics_full()
{
    run_file full
    armed FAULT_RANK=0 FAULT_CALL=write:metrics.jsonl FAULT_COUNT=5 \
        FAULT_TIMES=0 FAULT_ERRNO=28
    batch -N2 -n4 --ntasks-per-node=2
    batch_ends COMPLETED 0:0
    expect_text job.out 'metrics.jsonl.*No space left on device'
    same_bits
}

# ---- network ------------------------------------------------------------------------

# The ranks of n2 offer only their loopback device, where n1 cannot reach them.
wrong_network()
{
    local begin=$SECONDS

    run_file full
    # shellcheck disable=SC2016 # expanded by the task
    run nonzero srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix bash -c \
        '[ "$SLURM_PROCID" -lt 2 ] || export UCX_NET_DEVICES=lo; exec "$@"' \
        rank "$train" "${settings[@]}" --set fault.timeout="6 s" full.yaml
    note "ended with $status after $((SECONDS - begin)) s"
    note "$(grep '^cddp-train: ' err)"
    expect_text err '^cddp-train: .*rank 2 on n2 has UCX_NET_DEVICES'
    # A whole run on four ranks shows how busy the machine is.
    [ $((SECONDS - begin)) -le $((40 + 4 * straight_s)) ] ||
        fail "it took $((SECONDS - begin)) s, the undisturbed run $straight_s s"
}

shm_size()
{
    in_node n1 mount -o remount,size="$1" /dev/shm
    in_node n2 mount -o remount,size="$1" /dev/shm
}

# The ranks of a node do not need /dev/shm for the memory that they share.
small_shm()
{
    need in_node n1 true -- "nodes with mounts of their own"
    run_file full
    trap 'shm_size 1g' EXIT
    shm_size 64k
    run 0 "${on_two[@]}" "$train" "${settings[@]}" full.yaml
    same_bits
}

# ---- data ------------------------------------------------------------------------------

own_data()
{
    cp -r "$DATA" data
    sed "s|DATA|data|" "$SOURCE/tests/slurm/runs/full.yaml" >full.yaml
}

# change NAME CODE: run CODE in Python, with ./data/NAME open as f.
change()
{
    "${h5py[@]}" "import h5py, numpy
with h5py.File('data/$1', 'r+') as f:
    $2" || skip "python3-h5py"
}

# Chunks that h5py wrote are decoded to the bits of contiguous storage; lzf
# needs no plugin.
chunks_of_h5py()
{
    own_data
    change train-01.h5 'x = f["spins"][...]
    del f["spins"]
    f.create_dataset("spins", data=x, chunks=(10,) + x.shape[1:], compression="lzf")'
    change train-00.h5 'x = f["spins"][...]
    del f["spins"]
    f.create_dataset("spins", data=x, chunks=(7,) + (5,) * (x.ndim - 1),
        compression="gzip", shuffle=True, fletcher32=True)'
    run 0 "${on_two[@]}" "$train" "${settings[@]}" full.yaml
    same_bits
}

# A filter that nobody has: lzf with another number.
filter_missing()
{
    own_data
    change train-01.h5 'x = f["spins"][...]
    del f["spins"]
    f.create_dataset("spins", data=x, chunks=(10,) + x.shape[1:], compression="lzf")'
    "${h5py[@]}" 'all = open("data/train-01.h5", "rb").read()
assert all.count(b"\x00\x7d\x08\x00") == 1
open("data/train-01.h5", "wb").write(
    all.replace(b"\x00\x7d\x08\x00", b"\xbc\x7f\x08\x00"))'
    run 65 "${on_two[@]}" "$train" "${settings[@]}" full.yaml
    expect_text err 'train-01.h5: /spins was written with filter 32700 .lzf., which is not installed'
    expect_lines err '^cddp-train: ' 1
    [ ! -e run ] || fail "a refused start left files"
}

number_missing()
{
    own_data
    change train-01.h5 'x = f["spins"][...].astype("f4")
    x[123].flat[7] = numpy.nan
    del f["spins"]
    f["spins"] = x'
    run 65 "${on_two[@]}" "$train" "${settings[@]}" full.yaml
    expect_text err 'holds nan in row 123 of .*train-01.h5'
    expect_no_text err "lower the optimizer's lr"
    expect_lines err '^cddp-train: ' 1
}

# replaced REPRODUCIBLE STATUS: with train.reproducible=REPRODUCIBLE, a resume
# on replaced data ends with STATUS.
replaced()
{
    own_data
    run 0 srun -N1 -n1 --mpi=pmix "$train" "${settings[@]}" \
        --set train.reproducible="$1" full.yaml
    change train-02.h5 'f["phase"][...] = 1 - f["phase"][...]'
    run "$2" srun -N1 -n1 --mpi=pmix "$train" "${settings[@]}" \
        --set train.reproducible="$1" --set train.epochs=2 full.yaml
    expect_text err 'data.train: 1 of 3 shards hold.* other samples than when the checkpoint was written, the first is train-02.h5'
}

# One bit changes; to compare only a sample of the bytes would not find it.
flipped()
{
    local full=(--set data.validate=full)

    own_data
    run 0 srun -N1 -n1 --mpi=pmix "$train" "${settings[@]}" "${full[@]}" full.yaml
    change train-00.h5 'x = f["spins"][700].astype("u1")
    x.flat[333] ^= 2
    f["spins"][700] = x.astype(f["spins"].dtype)'
    run 65 srun -N1 -n1 --mpi=pmix "$train" "${settings[@]}" "${full[@]}" \
        --set train.epochs=2 full.yaml
    expect_text err 'other samples than when the checkpoint was written, the first is train-00.h5'
}

straight_s=$SECONDS
straight_run "${settings[@]}" || exit 1
straight_s=$((SECONDS - straight_s))
test_case "a rank takes more memory than its cgroup has" over_memory
test_case "ranks that need more memory than the job has" over_the_job
test_case "the disk of the run directory is full" disk_full
test_case "a quota is exceeded" quota
test_case "an IO error in a checkpoint" write_error 5 'Input/output error'
test_case "a full disk for two checkpoints" write_error 28 \
    'No space left on device'
test_case "an IO error in each checkpoint" write_error_stays
test_case "a stale file handle while data is read" read_error 116 "Stale file handle"
test_case "an IO error while data is read" read_error 5 "Input/output error"
test_case "data that stays away" read_error_stays
test_case "data that one node may not read" read_forbidden
test_case "another build on one node" other_build
test_case "another plugin on one node" other_plugin
test_case "another run file on one node" other_run_file
test_case "the same run twice" twice FAULT_CALL=none
test_case "the same run twice, without locks" without_locks
test_case "closed output" output_closed
test_case "a full disk under the log" log_full
test_case "a full disk under the metrics" metrics_full
test_case "the wrong network on one node" wrong_network
test_case "64 KiB of /dev/shm" small_shm
test_case "chunks that h5py compressed" chunks_of_h5py
test_case "an HDF5 filter is missing" filter_missing
test_case "nan in an input" number_missing
test_case "data is replaced between two lives" replaced false 0
test_case "data is replaced between two lives, reproducible" replaced true 65
test_case "a bit of the data flips" flipped
test_done
