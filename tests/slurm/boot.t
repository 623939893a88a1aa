#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# boot under a real srun: exchange, refusal without PMIx, agreement, absent
# ranks, deaths before and after PMIx is closed, and MPI around or inside it.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

probe=$BUILD/tests/slurm/boot_probe
two_by_two=(srun -N2 -n4 --ntasks-per-node=2)

exchange()
{
    local rank

    run 0 "${two_by_two[@]}" --mpi=pmix "$probe" exchange
    for rank in 0 1; do
        expect_text out "^rank $rank of 4 on n1 by pmix$"
        expect_text out "^rank $((rank + 2)) of 4 on n2 by pmix$"
    done
}

exchange_16()
{
    run 0 srun -N2 -n16 --mpi=pmix "$probe" exchange
    expect_lines out '^rank [0-9]+ of 16 on n[12] by pmix$' 16
}

one_rank()
{
    run 0 srun -n1 --mpi=pmix "$probe" exchange
    expect_text out '^rank 0 of 1 on n. by pmix$'
    run 0 srun -n1 "$probe" exchange
    expect_text out '^rank 0 of 1 on n. by solo$'
    run 0 "$probe" exchange
    expect_text out '^rank 0 of 1 on .* by solo$'
}

refused_without_pmix()
{
    run 78 "${two_by_two[@]}" --mpi=none "$probe" exchange
    expect_lines err 'this step has 4 tasks.*srun --mpi=pmix' 4
    run 78 "${two_by_two[@]}" --mpi=pmi2 "$probe" exchange
    expect_text err 'srun --mpi=pmix'
}

agreement()
{
    run 78 "${two_by_two[@]}" --mpi=pmix "$probe" agree - 2
    expect_lines err 'the configuration of rank 2 .first on host n2.' 4
    run 0 "${two_by_two[@]}" --mpi=pmix "$probe" agree - 9
}

lengths_disagree()
{
    run 78 srun -N2 -n2 --mpi=pmix "$probe" unequal
    expect_text err 'rank 1 gives 16 bytes, rank 0 8'
}

# Ranks that hang, on the other node and on this one.
absent_ranks_are_named()
{
    local rank

    for rank in 1 3; do
        start "${two_by_two[@]}" -K0 --mpi=pmix "$probe" absent 2 "$rank"
        wait_until 30 three_name "$rank"
        kill -TERM "$pid"
        finish nonzero
    done
}

three_name()
{
    [ "$(grep -cE "start-up exchange 1 was given up after [0-9]+ s \(PMIx: [^)]+\): rank $1 did not come\$" bg.err)" -eq 3 ]
}

# PMIx gives up before cddp does: the message says after how many seconds.
pmix_gives_up()
{
    start env SLURM_PMIX_TIMEOUT=3 "${two_by_two[@]}" -K0 --mpi=pmix "$probe" absent 100 1
    wait_text 60 bg.err 'start-up exchange 1 was given up after [0-9]{1,2} s .PMIx: .*did not come$'
    kill -TERM "$pid"
    finish nonzero
    expect_no_text bg.err 'after 100 s'
}

# Run mode $1 (die, die-open) of the probe and wait until rank 1 is dead.
deaths()
{
    mkdir dir
    start "${two_by_two[@]}" --mpi=pmix --no-kill -K0 "$probe" "$1" "$PWD/dir"
    wait_until 30 test -s dir/pid.1
    wait_until 30 process_gone "$(cat dir/pid.1)"
}

process_gone()
{
    ! kill -0 "$1" 2>/dev/null
}

survivors_live_after_close()
{
    deaths die
    wait_text 10 bg.err 'task 1: Killed'
    touch dir/release
    finish 137
    expect_file dir/alive.0 dir/alive.2 dir/alive.3
}

# This behaviour of Slurm is why boot closes PMIx early. The test shows if a
# version of Slurm changes it.
open_pmix_kills_the_step()
{
    local rank

    deaths die-open
    for rank in 0 2 3; do
        wait_until 30 process_gone "$(cat "dir/pid.$rank")"
    done
    finish nonzero
    [ ! -e dir/alive.0 ] || fail "rank 0 lived on"
}

mpi_inside()
{
    need_mpi
    run 0 "${two_by_two[@]}" --mpi=pmix "$probe" mpi-inside
    expect_lines out '^rank . of 4 on n. by pmix$' 4
}

mpi_outside()
{
    need_mpi
    run 0 "${two_by_two[@]}" --mpi=pmix "$probe" mpi-outside
    expect_lines out '^rank . of 4 on n. by pmix$' 4
}

test_case "4 ranks on 2 nodes exchange blobs" exchange
test_case "16 ranks do" exchange_16
test_case "one rank needs nobody" one_rank
test_case "without --mpi=pmix the step is refused" refused_without_pmix
test_case "a differing configuration names the rank" agreement
test_case "blobs of different length are refused" lengths_disagree
test_case "ranks that do not come are named" absent_ranks_are_named
test_case "PMIx gives up before cddp does" pmix_gives_up
test_case "after boot_close survivors of a death go on" \
    survivors_live_after_close
test_case "while PMIx is open a death ends the step" open_pmix_kills_the_step
test_case "PMIx open, MPI started and ended inside" mpi_inside
test_case "MPI started, PMIx opened and closed inside" mpi_outside
test_done
