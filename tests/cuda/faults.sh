#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Put one fault at a time into a copy of the sources of the CUDA plugin, and see
# that the tests on the emulated device catch it, and by which tool: a barrier
# that is missing, a write behind a tensor, a host that reads a device, an event
# that nobody waits for.
set -eu
source=$(cd "${srcdir:-.}" && pwd)
[ -f .libs/libcddp_cuda_emu.so ] || {
    echo "there is no emulated plugin, since CUDA's headers are missing" >&2
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export srcdir=$source CDDP_EMU_PLUGIN=$dir/faulty.so
# The flags of a make above would add lines to what is printed.
make="env -u MAKEFLAGS -u MFLAGS ${MAKE:-make}"
cc=$($make -s --no-print-directory print-emu-cc)
cxx=$($make -s --no-print-directory print-emu-cxx)
libs=$($make -s --no-print-directory print-emu-libs)
failed=0

# faulty FILE UNIT SED: change FILE by the program SED, compile UNIT, which is
# FILE or includes it, and link the plugin with it.
faulty() {
    local object compiler=$cc name
    mkdir -p "$dir/src/${1%/*}" "$dir/src/${2%/*}"
    cp "$source/src/$2" "$dir/src/$2"
    sed "$3" "$source/src/$1" >"$dir/changed"
    if cmp -s "$source/src/$1" "$dir/changed"; then
        echo "FAIL: nothing changes in src/$1 by: $3"
        exit 1
    fi
    mv "$dir/changed" "$dir/src/$1"
    name=${2##*/}
    if [ "${2%.cu}" != "$2" ]; then
        compiler=$cxx
        object=src/${2%.cu}.emu.o
    else
        object=src/${2%/*}/.libs/libcddp_cuda_emu_la-${name%.c}.o
    fi
    # shellcheck disable=SC2086 # lists of words
    ${compiler/@FIRST@/-I$dir/src} -c -o "$dir/faulty.o" "$dir/src/$2"
    # shellcheck disable=SC2046,SC2086
    ${cxx%%@FIRST@*} ${SANITIZE:-} -shared -Wl,-Bsymbolic -o "$dir/faulty.so" \
        "$dir/faulty.o" $(find src -path '*.libs/libcddp_cuda_emu_la-*.o' \
            ! -path "$object"; find src -name '*.emu.o' ! -path "$object") \
        -Wl,--whole-archive .libs/libcuda_fake.a -Wl,--no-whole-archive \
        .libs/liboppure.a .libs/libbase.a $libs
}

# caught WHAT TOOL TEST FILTER WORDS [CASES]: the test fails, and says WORDS. Of
# the cases of an op test those run that have CASES in their names.
caught() {
    local log=$dir/log
    if CDDP_OP_CASES=${6-} "$3" --filter "$4" >"$log" 2>&1; then
        echo "FAIL: $1: $3 passes"
        failed=1
    elif ! grep -q -- "$5" "$log"; then
        echo "FAIL: $1: $3 does not say: $5"
        tail -20 "$log"
        failed=1
    else
        echo "$1: caught by $2: $(grep -m 1 -- "$5" "$log")"
    fi
    rm -rf "$dir/src"
}

# Barriers of a sum over a block, as groupnorm uses it: ahead of the sum of the
# warps' sums, and behind it, where the next sum writes the same memory.
faulty op/cuda/device/reduce.cuh op/cuda/ops/norm.cu \
    '0,/__syncthreads();/{s/__syncthreads();//}'
caught "a missing barrier" "NaN in shared memory that nobody wrote" \
    tests/op/test_op_cuda op_cuda/small_float32 'but ref has' groupnorm
faulty op/cuda/device/reduce.cuh op/cuda/ops/norm.cu \
    '/part.lane. : T(0)/{n;s/__syncthreads();//}'
caught "a missing second barrier" "the schedules of the emulator" \
    tests/op/test_op_cuda op_cuda/schedules 'under another schedule' groupnorm

# The last elements are written four at a time, too.
faulty op/cuda/device/each.cuh op/cuda/ops/activation.cu \
    's/if (i + N <= count)/if (true)/'
caught "a write behind a tensor" "the bytes behind each block of a test" \
    tests/op/test_op_cuda op_cuda/small_float32 'behind a block' sigmoid

faulty op/cuda/ops/relu.cu op/cuda/ops/relu.cu \
    '/^static err_code_t relu_forward/,/^}/s/^{/{ if (*(const volatile float *)args->x > 1e30f) return ERR_MEMORY;/'
caught "a host that reads a device" "the protection of the device's memory" \
    tests/op/test_op_cuda op_cuda/small_float32 'signal\|CRASH\|SEGV' relu

faulty dev/dev_cuda_stream.c dev/dev_cuda_stream.c \
    's/cudaStreamWaitEvent(.*, 0)/((void)on, cudaSuccess)/'
caught "an event that nobody waits for" "streams that run late" \
    tests/dev/test_dev_cuda cuda/streams 'rig.host'
exit $failed
