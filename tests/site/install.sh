#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# `make uninstall` leaves no file, and no directory of cddp's, but what others put
# into one.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

# A separate make, without the jobs of `make check`.
make_here()
{
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" DESTDIR="$root" "$@" \
        >"$scratch/log" 2>&1 && return
    echo "FAIL: make $*"
    tail -n 20 "$scratch/log"
    exit 1
}

make_here install
modules=$(dirname "$(find "$root" -name '*.lua')")
for file in train.sbatch cddp-train cddp.pc own-loop.c cddp-train.1; do
    [ -n "$(find "$root" -type f -name $file)" ] || {
        echo "FAIL: $file was not installed"
        exit 1
    }
done
make_here uninstall
left=$(find "$root" ! -type d -o -path '*/share/cddp' -o -path '*/doc/cddp' \
    -o -path '*/include/cddp' -o -path "$modules")
[ -z "$left" ] || {
    echo "FAIL: make uninstall left: $left"
    exit 1
}
make_here install
touch "$modules/other"
make_here uninstall
left=$(find "$root" ! -type d)
[ "$left" = "$modules/other" ] || {
    echo "FAIL: make uninstall left: $left"
    exit 1
}
