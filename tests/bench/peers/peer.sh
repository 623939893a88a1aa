# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
#
# For the scripts beside this (sourced): peer_run FILE ARGUMENT... runs FILE, of
# this folder, with a Python that has torch: $PYTHON (default: python3). Without
# one it says so and ends with status 77. $BUILD is the build directory (default:
# this one).
peer_run()
{
    local file python=${PYTHON:-python3}

    file=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$1
    shift
    if ! "$python" -c 'import torch' 2>/dev/null; then
        echo "${0##*/}: skipped: $python has no torch (pip install torch in a" \
            "virtual environment, then PYTHON=ENVIRONMENT/bin/python)"
        exit 77
    fi
    # These cripple the peer where a shell exports them; and an allocator that
    # gives memory back makes it pay for page faults in each step.
    unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
    export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296
    export BUILD="${BUILD:-$PWD}"
    exec "$python" "$file" "$@"
}
