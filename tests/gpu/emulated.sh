#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# What tests/gpu/run does on a GPU, on the emulated one: whole runs of cddp-train
# on the device "cuda" against the CPU. The ops themselves are in
# tests/op/test_op_cuda.
set -u
source=$(cd "${srcdir:-.}" && pwd)
[ -f .libs/libcddp_cuda_emu.so ] || {
    echo "SKIP: configure found no CUDA toolkit, so there is no emulation"
    exit 77
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
BUILD=$PWD "$source/tests/gpu/run" --emulated --out "$out" \
    device curves resume precisions hidden full hogged program || exit 1
cat "$out/record.md"
