# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2154 # pid is set by the test
# For tests that wait for events of a run, process $pid, whose output is ./log.

fail() {
    echo "FAIL: $*"
    cat log
    exit 1
}

# wait_for COMMAND...: wait until it succeeds. The limit is so long that this
# fails only if the run hangs or has ended.
wait_for() {
    local end=$((SECONDS + 300))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "waited 300 s in vain for: $*"
        kill -0 "$pid" 2>/dev/null || fail "the run has ended before: $*"
        sleep 0.02
    done
}
