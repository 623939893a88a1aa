#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The example of a user's own training loop, compiled against the installed
# library through pkg-config: with any number of ranks it learns the line, and
# the losses are equal. Then the symbols that the library exports, and its
# headers in C++.
# shellcheck source=SCRIPTDIR/install.sh
. "${srcdir:-.}/tests/api/install.sh"

compile "$source/examples/c/own-loop.c" "$scratch/own-loop" ||
    fail "own-loop.c does not compile"
for ranks in 1 2 3; do
    out=$("$scratch/own-loop" $ranks 2>&1) || fail "$ranks ranks: $out"
    [[ ${out##*$'\n'} == "$ranks ranks: w 3.000 b -1.000" ]] ||
        fail "$ranks ranks: $out"
    # Only the first losses are compared; later ones differ by rounding.
    losses=$(head -n 5 <<<"$out")
    [[ $losses == step\ 1\ loss\ *step\ 16\ loss\ * ]] || fail "$out"
    [ "$losses" = "${alone:=$losses}" ] ||
        fail "$ranks ranks have the losses $losses, one has $alone"
done
out=$("$scratch/own-loop" -1 2>&1)
[[ $? == 78 && $out == "own-loop: local is -1, but"* ]] || fail "-1: $out"

# On an emulated GPU the losses are the same. Without a GPU the status is 69,
# and the message says why.
emulated=$build/.libs/libcddp_cuda_emu.so
if [ -e "$emulated" ]; then
    for ranks in 1 2; do
        out=$(CDDP_CUDA_PLUGIN=$emulated "$scratch/own-loop" --device cuda \
            $ranks 16 2>&1) || fail "$ranks ranks on a GPU: $out"
        [ "$(head -n 5 <<<"$out")" = "$alone" ] ||
            fail "$ranks ranks on a GPU: $out, on the CPU $alone"
    done
    out=$(CDDP_FAKE_CUDA=driver=0 CDDP_CUDA_PLUGIN=$emulated \
        "$scratch/own-loop" --device cuda 2 2>&1)
    [[ $? == 69 && $out == "own-loop: "*driver* ]] || fail "no driver: $out"
else
    echo "not tested on an emulated GPU: there is no $emulated"
fi
plugin=$build/.libs/libcddp_cuda.so
if [ -e "$plugin" ]; then
    out=$(CUDA_VISIBLE_DEVICES='' CDDP_CUDA_PLUGIN=$plugin \
        "$scratch/own-loop" --device cuda 2>&1)
    [[ $? == 69 && $out == "own-loop: "*@(driver|visible)* ]] ||
        fail "no GPU: $out"
fi
out=$(CDDP_CUDA_PLUGIN=$scratch/none.so "$scratch/own-loop" --device cuda 3 2>&1)
[[ $? == 69 && $out == "own-loop: "*"$scratch/none.so"* ]] ||
    fail "no plugin: $out"
out=$("$scratch/own-loop" --device gpu 2 2>&1)
[[ $? == 78 && $out == "own-loop: "*cuda:1* ]] || fail "--device gpu: $out"

# Without LD_LIBRARY_PATH a program finds the library through the path in
# cddp.pc, and a program linked without pkg-config through what `module load`
# sets.
expected="1 ranks: w 3.000 b -1.000"
# shellcheck disable=SC2046,SC2086 # lists of words
$CC -std=c11 -O1 $SANITIZE "$source/examples/c/own-loop.c" \
    $(pkg-config --cflags cddp) $(env -u PKG_CONFIG_SYSROOT_DIR \
    pkg-config --define-variable=libdir="$libdir" --libs cddp) \
    -o "$scratch/by-pc" || fail "own-loop.c does not compile by cddp.pc"
out=$(env -u LD_LIBRARY_PATH "$scratch/by-pc" 1 2>&1)
[[ ${out##*$'\n'} == "$expected" ]] || fail "started by cddp.pc: $out"
module=$(find "$build/slurm/modulefile" -type f -name '[0-9]*' ! -name '*.*[a-z]')
path=$(awk '$1 == "prepend-path" && $2 == "LD_LIBRARY_PATH" {print $3}' \
    "$module")
# shellcheck disable=SC2046,SC2086
$CC -std=c11 -O1 $SANITIZE "$source/examples/c/own-loop.c" \
    $(pkg-config --cflags cddp) -L"$libdir" -lcddp -o "$scratch/by-module" ||
    fail "own-loop.c does not compile"
out=$(LD_LIBRARY_PATH=$scratch/root$path "$scratch/by-module" 1 2>&1)
[[ ${out##*$'\n'} == "$expected" ]] || fail "started by the module: $out"

# Only names that begin with cddp_ are exported.
names=$(nm -D --defined-only "$libdir/libcddp.so" | awk '{print $3}')
if stray=$(grep -v '^cddp_' <<<"$names"); then
    fail "exported: $stray"
fi
for header in "$source"/include/cddp/*.h; do
    for name in $(grep -oE '\bcddp_[a-z_]+\(' "$header" | tr -d '(' | sort -u); do
        grep -qx "$name" <<<"$names" ||
            [[ $name == cddp_@(version_check|refuse|input_find) ]] || # inline
            fail "$header declares $name, which is not in the library"
    done
    # Each header can be included alone, also in C++.
    # shellcheck disable=SC2046
    echo "#include <cddp/${header##*/}>" | $CC -std=c11 -pedantic -Wall -Werror \
        -fsyntax-only -x c $(pkg-config --cflags cddp) - ||
        fail "$header does not stand alone"
    command -v c++ >/dev/null || continue
    # shellcheck disable=SC2046
    echo "#include <cddp/${header##*/}>" | c++ -std=c++11 -pedantic -Wall \
        -Werror -fsyntax-only -x c++ $(pkg-config --cflags cddp) - ||
        fail "$header is no C++"
done
exit $failed
