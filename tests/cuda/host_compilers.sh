#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Kernels compile with gcc and with clang as nvcc's host compiler, and need no C++
# library afterwards.
set -u
source=$(cd "${srcdir:-.}" && pwd)
# variable NAME: as this build has it. With $compiler as the host compiler.
variable() {
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s --no-print-directory \
        NVCC_CCBIN="$compiler" "print-$1"
}
compiler=cc
if [ -z "$(variable NVCC_ARCHS)" ]; then
    echo "SKIP: nvcc is not used by this build ($(./cddp-info --version |
        sed -n 's/^cuda *//p'))"
    exit 77
fi
nvcc=$(variable NVCC)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
for name in gcc clang; do
    # nvcc looks for other programs beside a clang, where a link of ccache has none.
    compiler=$name
    [ $name = gcc ] ||
        compiler=$(clang --version 2>/dev/null | sed -n 's/^InstalledDir: //p')/clang
    if ! command -v "$compiler" >/dev/null; then
        echo "not tested with $name, which is not here"
        continue
    fi
    for file in src/op/cuda/ops/relu.cu src/op/cuda/planes.cu; do
        # shellcheck disable=SC2046,SC2086 # lists of words
        if ! out=$($nvcc $(variable NVCC_FLAGS) -c -o "$scratch/x.o" \
            "$source/$file" 2>&1); then
            echo "FAIL: $file with $compiler: $out"
            failed=1
        elif nm -u "$scratch/x.o" | grep -E ' (_ZS|_ZN|__cxa_|__gxx_)'; then
            echo "FAIL: $file with $compiler needs a C++ library"
            failed=1
        fi
    done
done
exit $failed
