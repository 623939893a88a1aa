#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# make install puts the CUDA plugin where programs look for it, complete with the
# folders of CUDA's libraries, and make uninstall removes it. It exports one name,
# and needs no C++ library.
set -u
# variable NAME: as this build has it.
variable() {
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s --no-print-directory "print-$1"
}
# into TARGET: make it below $scratch.
into() {
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" DESTDIR="$scratch" "$1" 2>&1
}
fail() {
    echo "FAIL: $*"
    exit 1
}
if [ -z "$(variable NVCC_ARCHS)" ]; then
    echo "SKIP: there is no plugin in this build ($(./cddp-info --version |
        sed -n 's/^cuda *//p'))"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$(into install-pkglibLTLIBRARIES) || fail "$out"
plugin=$scratch$(variable pkglibdir)/libcddp_cuda.so
[ -f "$plugin" ] || fail "no $plugin in: $(find "$scratch" -type f)"
id=$(./cddp-info --version | sed -n 's/^.*(build \(.*\))$/\1/p')
grep -q -- "$id" "$plugin" || fail "$plugin is no plugin of build $id"
out=$(ldd "$plugin" | grep 'not found') && fail "$out"
out=$(readelf -d "$plugin" | grep -E 'NEEDED.*(stdc\+\+|gcc_s|dnnl|hdf5)') &&
    fail "$out"
out=$(nm -D --defined-only "$plugin" | awk '{print $3}')
[ "$out" = cddp_cuda ] || fail "it exports $out"
out=$(CDDP_CUDA_PLUGIN=$plugin CUDA_VISIBLE_DEVICES='' ./cddp-info)
grep -qE '^gpus .*(driver|visible)' <<<"$out" || fail "$out"
out=$(into uninstall-pkglibLTLIBRARIES) || fail "$out"
out=$(find "$scratch" -name 'libcddp_cuda*')
[ -z "$out" ] || fail "not uninstalled: $out"
