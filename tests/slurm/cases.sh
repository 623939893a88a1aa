#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# lib.sh without a cluster: which cases run, are skipped, or fail.
source=$(cd "${srcdir:-.}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

mkdir "$scratch/bin"
printf '#!/bin/sh\n' >"$scratch/bin/scancel"
chmod +x "$scratch/bin/scancel"
cat >"$scratch/some.t" <<END
. "$source/tests/slurm/lib.sh"
first() { true; }
second() { false; }
has() { need test x = x -- "a test"; }
lacks() { need test -n "" -- "something -- and more"; }
inner() { need bash -c 'exit \$#' bash -- one -- "an inner --"; }
open() { need true "a text"; }
speaks()
{
    start bash -c 'echo one; echo two >&2'
    wait_text 600 bg.out one
    finish 0
    wait_text 600 bg.err two
}
silent()
{
    start bash -c 'echo one; exit 3'
    wait_text 600 bg.out two
}
test_case "the first of all" first
test_case "the second" second
test_case "needs what is there" has
test_case "needs what is not there" lacks
test_case "needs a command with --" inner
test_case "needs no text" open
test_case "waits until a line is written" speaks
test_case "fails when the writer has ended" silent
test_done
END

# expect CASES STATUS LINE...: with CDDP_CASES=CASES the file ends with STATUS,
# and its verdicts are these. The file "all" gets everything that it printed.
expect()
{
    local said status

    said=$(CDDP_CASES=$1 TMPDIR=$scratch PATH=$scratch/bin:$PATH \
        bash "$scratch/some.t" 2>&1)
    status=$?
    printf '%s\n' "$said" >"$scratch/all"
    said=$(grep -v '^#' <<<"$said")
    if [ $status -ne "$2" ] || [ "$said" != "$(printf '%s\n' "${@:3}")" ]; then
        echo "FAIL: CDDP_CASES='$1': status $status, expected $2: $said"
        failed=1
    fi
}

expect "" 1 "ok 1 - the first of all" "not ok 2 - the second" \
    "ok 3 - needs what is there" \
    "ok 4 - needs what is not there # SKIP something -- and more" \
    "ok 5 - needs a command with -- # SKIP an inner --" \
    "not ok 6 - needs no text" "ok 7 - waits until a line is written" \
    "not ok 8 - fails when the writer has ended" "1..8"
why="the command of start has ended with status 3, and bg.out has no line like: two"
if ! grep -q "^# .*$why\$" "$scratch/all"; then
    echo "FAIL: not told why: $(cat "$scratch/all")"
    failed=1
fi
out="# SKIP not in CDDP_CASES"
expect "^the (first|third)" 0 "ok 1 - the first of all" "ok 2 - the second $out" \
    "ok 3 - needs what is there $out" "ok 4 - needs what is not there $out" \
    "ok 5 - needs a command with -- $out" "ok 6 - needs no text $out" \
    "ok 7 - waits until a line is written $out" \
    "ok 8 - fails when the writer has ended $out" "1..8"
exit $failed
