# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# For tests of cddp-data (sourced in the build directory): a directory of their
# own, to which they change, and what each command must say.
# shellcheck shell=bash disable=SC2034 # failed is read by the test
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
data=$build/cddp-data
failed=0

# needs MODULE...: skip the test if Python lacks one of them.
needs() {
    local modules=$*
    /usr/bin/python3 -c "import ${modules// /, }" 2>/dev/null || {
        echo "SKIP: Python lacks one of: $modules (Debian: python3-h5py, python3-yaml)"
        exit 77
    }
}

expect() { # STATUS PATTERN ARGUMENT...
    local status=0
    "$data" "${@:3}" >out 2>&1 || status=$?
    if [ $status != "$1" ] || ! grep -q -e "$2" out; then
        echo "FAIL: cddp-data ${*:3}: status $status instead of $1, or no '$2' in:"
        cat out
        failed=1
    fi
}
