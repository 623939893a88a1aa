#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# cddp-info on two hosts. --check finds nothing where there is nothing, and
# names the host that is made odd: its clock, /dev/shm, file system, build, and a
# rank that hangs.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

info=$BUILD/cddp-info
points=$BUILD/tests/slurm/.libs
pair=(srun -N2 -n2 --ntasks-per-node=1 --mpi=pmix)

clean()
{
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$info" --check
    expect_text out '^4 ranks on 2 hosts, build '
    expect_text out '^clocks: at most '
    expect_text out '^all-reduce of 1 MB by two hosts: .* ms .n[12]. to .* ms .n[12].$'
    expect_lines out '^no findings$' 1
    expect_equal "files left" "$(find . -name '.cddp-check-*')" ""
}

# Five hosts by name, so that there are three rounds of pairs. They share two cores,
# so one may be slow; nothing else may be found there.
five()
{
    need unshare --uts true -- "the right to make UTS namespaces"
    # shellcheck disable=SC2016 # expanded by the task
    printf '#!/bin/bash\nexec unshare --uts bash -c %s "$@"\n' \
        "'hostname h\$SLURM_PROCID && exec \"\$0\" \"\$@\"'" >task
    chmod 755 task
    run any srun -N1 -n5 --mpi=pmix ./task "$info" --check
    expect_text out '^5 ranks on 5 hosts, '
    expect_text out '^all-reduce of 1 MB by two hosts: .* .h[0-4]. to .* .h[0-4].$'
    note "$(grep '^finding: ' out)"
    sed -i '/^finding: .* an all-reduce of 1 MB/d' out
    expect_no_text out '^finding: '
}

# What cddp-info says of the nodes and of Slurm.
told()
{
    run 0 "$info"
    expect_text out '^slurm +srun --mpi: .*pmix'
    run 0 "${pair[@]}" "$info" --topology
    expect_lines out '^  .*memory [0-9.]+ ' 2
    expect_lines out '^  ucx: on this host .*; to others .*tcp/' 2
    expect_lines out '^n1 sends to other hosts by tcp:eth0$' 1
    expect_lines out '^n2 sends to other hosts by tcp:eth0$' 1
}

# one_finding HOST WORDS: of both hosts only HOST has a finding.
one_finding()
{
    note "$(grep '^finding: ' out)"
    expect_lines out '^finding: ' 1
    expect_text out "^finding: $1: .*$2"
    expect_lines err '^cddp-info: 1 finding$' 1
}

# on_n2 CODE: make ./task, which runs its arguments, on n2 after CODE.
on_n2()
{
    # shellcheck disable=SC2016 # expanded by the task
    printf '#!/bin/bash\n[ "$SLURM_PROCID" = 0 ] || { %s; }\nexec "$@"\n' \
        "$1" >task
    chmod 755 task
}

clock()
{
    on_n2 "export LD_PRELOAD=$points/clock_point.so CLOCK_AHEAD=3600"
    run 69 "${pair[@]}" ./task "$info" --check
    one_finding n2 '(3600|3599)\.[0-9] s ahead of that of n1'
}

# in_mounts CODE: on n2, CODE is run in mounts of its own first.
in_mounts()
{
    need unshare --mount true -- "the right to make mount namespaces"
    on_n2 "exec unshare --mount bash -c '$1 && exec \"\$@\"' task \"\$@\""
}

shm()
{
    in_mounts "mount -t tmpfs -o size=1m none /dev/shm"
    run 69 "${pair[@]}" ./task "$info" --check
    one_finding n2 '/dev/shm has 1.0 MiB free'
}

private()
{
    mkdir dir
    in_mounts "mount -t tmpfs none $PWD/dir"
    run 69 "${pair[@]}" ./task "$info" --check --dir dir
    one_finding n2 'does not find the file that n1 made in dir'
}

read_only()
{
    mkdir dir
    in_mounts "mount --bind $PWD/dir $PWD/dir && mount -o remount,ro,bind $PWD/dir"
    run 69 "${pair[@]}" ./task "$info" --check --dir "$PWD/dir"
    one_finding n2 'cannot write in .*/dir: Read-only file system'
}

no_directory()
{
    run 69 "${pair[@]}" "$info" --check --dir nowhere
    one_finding n1 'cannot write in nowhere: No such file'
}

other_build()
{
    local id

    cp "$info" mine
    id=$("$info" --version | sed -nE 's/.*\(build ([^)]*)\).*/\1/p')
    [ -n "$id" ] || fail "no build id in: $("$info" --version)"
    LC_ALL=C sed "s/$id/$(tr '0-9a-f' '1-9a-f0' <<<"$id")/g" mine >other
    chmod 755 mine other
    cmp -s mine other && fail "the build id is not in the program"
    in_mounts "mount --bind $PWD/other $PWD/mine"
    run 69 "${pair[@]}" ./task "$PWD/mine" --check
    expect_lines out '^finding: ' 1
    expect_text out '^finding: n[12]: rank [01] has build '
}

# The rank on n2 hangs in fsync. The other rank names it, and it ends itself.
hang()
{
    on_n2 "export LD_PRELOAD=$points/slow_point.so SLOW_FSYNC=100"
    run nonzero "${pair[@]}" -K0 ./task "$info" --check
    note "$(grep '^cddp-info: ' err)"
    expect_text err '^cddp-info: .*rank 1 on n2'
    expect_text err '^cddp-info: rank 1 on n2 hangs for 15 s in the phase "fsync"'
    expect_equal "status" "$status" 76
}

test_case "two clean hosts" clean
test_case "five hosts, in pairs" five
test_case "what the nodes offer" told
test_case "a clock that is one hour ahead" clock
test_case "1 MiB of /dev/shm" shm
test_case "another file system on one host" private
test_case "a directory that is read-only on one host" read_only
test_case "a directory that is not there" no_directory
test_case "another build on one host" other_build
test_case "a rank that hangs" hang
test_done
