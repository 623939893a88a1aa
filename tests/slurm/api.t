#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# A user's own training loop on a real Slurm: examples/c/own-loop.c, compiled
# against the installed library, on two nodes. Its losses are those of one rank,
# and it names a rank that is killed.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
four=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)
user=$(mktemp -d "${TMPDIR:-/tmp}/cddp-test-user.XXXXXX")
trap 'rm -rf "$user"' EXIT
chmod 755 "$user"

# Install the library as tests/api does, and keep it. Without a compiler or
# pkg-config the status is 77.
(
    cd "$BUILD" || exit 1
    srcdir=$SOURCE
    # shellcheck source=SCRIPTDIR/../api/install.sh
    . "$SOURCE/tests/api/install.sh"
    compile "$SOURCE/examples/c/own-loop.c" "$user/own-loop" || exit 1
    cp -r "$libdir" "$user/lib"
) >"$user/log" 2>&1
installed=$?
# shellcheck disable=SC2031 # what the subshell had is gone
export LD_LIBRARY_PATH=$user/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

need_program()
{
    [ "$installed" != 77 ] || skip "$(cat "$user/log")"
    [ "$installed" = 0 ] || fail "own-loop.c: $(cat "$user/log")"
}

# The losses of steps 1 to 16; later ones differ by rounding.
first_losses()
{
    grep -E '^step (1|2|4|8|16) loss' "$1"
}

same_losses()
{
    need_program
    run 0 "$user/own-loop" 1
    first_losses out >alone
    expect_lines alone . 5
    run 0 "$user/own-loop" 4
    first_losses out | diff alone - || fail "4 threads have other losses"
    run 0 "${four[@]}" "$user/own-loop"
    first_losses out | diff alone - || fail "4 processes have other losses"
    expect_text out '^4 ranks: w 3\.000 b -1\.000$'
    expect_lines out 'ranks: w' 1
}

# Rank 3, on the second node, dies between its steps.
killed_rank()
{
    need_program
    # shellcheck disable=SC2016 # expanded by the task
    start "${four[@]}" -K0 bash -c 'echo $$ >pid.$SLURM_PROCID; exec "$@"' \
        rank "$user/own-loop" 0 2000000000
    wait_text 60 bg.out '^step 64 loss'
    kill -KILL "$(cat pid.3)"
    finish nonzero
    expect_text bg.err '^own-loop: .*rank 3 on n2 '
    note "$(grep '^own-loop: ' bg.err | sort | uniq -c)"
    expect_no_text bg.err '^own-loop: rank [012] '
}

test_case "own-loop.c has the same losses on 1 rank, 4 threads, 4 processes" \
    same_losses
test_case "own-loop.c names a killed rank" killed_rank
test_done
