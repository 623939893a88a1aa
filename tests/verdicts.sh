#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# How ./run-tests counts: each test once, however many lines contain its name. And it
# names what tests that passed have skipped.
set -u
source=$(cd "${srcdir:-.}" && pwd)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

eval "$(sed -n '/^verdicts() {/,/^}/p; /^parts_skipped() {/,/^}/p' "$source/run-tests")"

# counts "PASSED FAILED SKIPPED" LINE...: the counts for a log of these lines
counts() {
    local expected=$1 found
    shift
    printf '%s\n' "$@" >"$log"
    found=$(verdicts "$log")
    [ "$found" = "$expected" ] || {
        echo "FAIL: expected $expected, found $found: $*"
        failed=1
    }
}

counts "0 0 0" "# TOTAL: 0"
counts "2 1 1" "PASS: tests/a" "FAIL: tests/b" "SKIP: tests/c" "PASS: tests/d"
# automake prints a second line for a failure, before its log
counts "1 1 0" "PASS: tests/a" "FAIL: tests/b" "# FAIL:  1" \
    "FAIL: tests/b (exit status: 1)"
counts "0 1 0" "PASS: tests/b" "FAIL: tests/b (exit status: 134)"
counts "0 2 0" "ERROR: tests/a" "XPASS: tests/b"
counts "1 1 1" "ok 1 - one" "not ok 2 - two" "ok 3 - three # SKIP why"

# A part of a test that passed; a test that was skipped as a whole, or failed
printf '%s\n' "SKIP: a tool is missing" "SKIP: another one is" "SKIP" \
    "PASS tests/a.sh (exit status: 0)" "SKIP: all is missing" \
    "SKIP tests/b.sh (exit status: 77)" "SKIP: a tool is missing" \
    "FAIL tests/c.sh (exit status: 1)" "PASS tests/d (exit status: 0)" >"$log"
found=$(parts_skipped "$log" /nowhere)
[ "$found" = "part of tests/a.sh was skipped: a tool is missing
part of tests/a.sh was skipped: another one is" ] || {
    echo "FAIL: parts: $found"
    failed=1
}
counts "0 0 0" "part of tests/a.sh was skipped: a tool is missing"
exit $failed
