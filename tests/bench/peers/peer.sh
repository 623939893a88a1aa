# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
#
# Sourced by the scripts beside this one. peer_run FILE ARGUMENT... runs FILE of
# this folder with a Python that has torch: $PYTHON (default: python3). If that
# Python has no torch, peer_run says so and ends with status 77. $BUILD is the
# build directory (default: the current directory).
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
    # If the shell exports these variables they slow the peer down; and an
    # allocator that returns memory causes page faults in each step.
    unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
    export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296
    export BUILD="${BUILD:-$PWD}"
    exec "$python" "$file" "$@"
}
