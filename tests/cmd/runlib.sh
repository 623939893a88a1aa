# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# For tests that start cddp-train several times. Source this file in the build
# directory: it makes a directory for the test, changes to it, and defines fail.
# shellcheck shell=bash disable=SC2034 # variables are read by the test
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export OMP_NUM_THREADS=1
cd "$scratch" || exit 1

fail() {
    echo "FAIL: $*"
    failed=1
}
