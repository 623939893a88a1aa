#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Two versions are installed side by side: the programs of each version load its
# own CUDA plugin and refuse the plugin of the other. A version without CUDA
# installs no plugin and says so. make uninstall removes the files of its own
# version, and no others.
#
# This compiles all of cddp up to three times; it runs only with
# CDDP_TWO_BUILDS=1.
set -u
source=$(cd "${srcdir:-.}" && pwd)
# variable NAME: print what "make print-NAME" of this build prints.
variable() {
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s --no-print-directory "print-$1"
}
[ -n "${CDDP_TWO_BUILDS:-}" ] || {
    echo "SKIP: this compiles everything three times: set CDDP_TWO_BUILDS=1"
    exit 77
}
archs=$(variable NVCC_ARCHS)
[ -n "$archs" ] || {
    echo "SKIP: there is no plugin in this build ($(./cddp-info --version |
        sed -n 's/^cuda *//p'))"
    exit 77
}
read -r arch _ <<<"$archs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CCACHE_BASEDIR=$scratch CCACHE_NOHASHDIR=1
unset CDDP_CUDA_PLUGIN MAKEFLAGS MFLAGS
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# install NAME OPTION...: build the sources $scratch/NAME/source and install them
# below $scratch/NAME/root.
install() {
    local name=$1 log=$scratch/$1/log
    shift
    mkdir -p "$scratch/$name/build"
    (cd "$scratch/$name/build" &&
        ../source/configure --prefix="$scratch/$name/root" CC="${CC:-cc}" \
            CFLAGS=-O0 "$@" && make -j2 && make install) >"$log" 2>&1 || {
        echo "FAIL: $name: $(tail -n 20 "$log")"
        exit 1
    }
}

# info NAME: what cddp-info of the version NAME prints about GPUs.
info() {
    CUDA_VISIBLE_DEVICES='' "$scratch/$1/root/bin/cddp-info" | grep '^gpus '
}

# The sources without the folder of this build.
build=$(realpath --relative-to="$source" .)
for name in one two without; do
    mkdir -p "$scratch/$name/source"
    tar -C "$source" --exclude="./${build%%/*}" --exclude=./.git -cf - . |
        tar -C "$scratch/$name/source" -xf - || exit 1
done
echo "/* another version */" >>"$scratch/two/source/src/base/clock.c"
install one --with-cuda-arch="$arch"
install two --with-cuda-arch="$arch"
install without --without-cuda

# Each version has its own plugin, which was loaded: it asks for the driver.
for name in one two; do
    [ "$(find "$scratch/$name/root" -name 'libcddp_cuda.so*' | wc -l)" = 1 ] ||
        fail "$name has installed no plugin, or several"
    grep -qE 'driver|visible' <<<"$(info $name)" || fail "$name: $(info $name)"
done
[ -z "$(find "$scratch/without/root" -name 'libcddp_cuda*')" ] ||
    fail "a version without CUDA has installed a plugin"
grep -q 'libcddp_cuda.so' <<<"$(info without)" || fail "$(info without)"

# The plugin of the other version is refused, with both names.
id() {
    "$scratch/$1/root/bin/cddp-info" --version |
        sed -n 's/^.*(build \(.*\))$/\1/p'
}
[ "$(id one)" != "$(id two)" ] || fail "both are build $(id one)"
other=$(find "$scratch/two/root" -name libcddp_cuda.so)
out=$(CDDP_CUDA_PLUGIN=$other info one)
{ grep -q -- "$(id one)" <<<"$out" && grep -q -- "$(id two)" <<<"$out"; } ||
    fail "the other plugin: $out"

# libcddp in a user's own program also refuses the plugin of the other version.
program=$scratch/own-loop
lib=$(dirname "$(find "$scratch/one/root" -name libcddp.so)")
# shellcheck disable=SC2086 # a list of words
${CC:-cc} "$source/examples/c/own-loop.c" -I"$scratch/one/root/include" \
    -L"$lib" -lcddp -Wl,-rpath,"$lib" -o "$program" || fail "own-loop.c"
"$program" 2 >/dev/null || fail "own-loop on the CPU"
out=$(CUDA_VISIBLE_DEVICES='' "$program" --device cuda 2>&1)
rc=$?
{ [ $rc = 69 ] && grep -qE 'driver|visible' <<<"$out"; } ||
    fail "own-loop: status $rc: $out"
out=$(CDDP_CUDA_PLUGIN=$other "$program" --device cuda 2>&1)
rc=$?
{ [ $rc = 69 ] && grep -q -- "$(id two)" <<<"$out"; } ||
    fail "own-loop with the other plugin: status $rc: $out"

# After two versions are uninstalled, the third still works.
for name in one without; do
    (cd "$scratch/$name/build" && make uninstall) >/dev/null 2>&1 ||
        fail "make uninstall of $name"
    left=$(find "$scratch/$name/root" -type f)
    [ -z "$left" ] || fail "not uninstalled: $left"
done
grep -qE 'driver|visible' <<<"$(info two)" || fail "two, alone: $(info two)"
exit $failed
