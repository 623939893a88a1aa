#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The environment modules in Lmod and in Environment Modules, by tests/site/
# module_user.sh: cddp as it is installed below a temporary directory, and a second
# version beside it, which loads another module first. The two tools cannot be
# installed together: tests/site/unpack puts both into $CDDP_MODULES.
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
CC=${CC:-cc}
tools=${CDDP_MODULES:-${XDG_CACHE_HOME:-${HOME-}/.cache}/cddp-modules}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
tested=0

# first PATH...: print the first one that exists.
first()
{
    local path

    for path; do
        [ ! -e "$path" ] || {
            echo "$path"
            return
        }
    done
}
# The words of each tool's command, empty if it is missing.
lua=$(first "$tools/lmod/usr/bin/lua5.3" /usr/bin/lua5.3 /usr/bin/lua)
lmod=$(first "$tools"/lmod/usr/share/lmod/[0-9]*/libexec/lmod \
    /usr/share/lmod/[0-9]*/libexec/lmod /usr/share/lmod/lmod/libexec/lmod)
tclsh=$(command -v tclsh || command -v tclsh8.6)
modulecmd=$(first "$tools"/tcl/usr/lib/*/modulecmd.tcl /usr/lib/*/modulecmd.tcl \
    /usr/share/Modules/libexec/modulecmd.tcl)

# make_here ARGUMENT...: a separate make, without the jobs of `make check`.
make_here()
{
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -C "$build" "$@" \
        >"$scratch/make.log" 2>&1 && return
    echo "FAIL: make $*"
    tail -n 20 "$scratch/make.log"
    exit 1
}

# Two versions. The files of the first are the installed ones, with the directory
# below which they lie here; `make` writes those of the second for its own prefix.
install_versions()
{
    local file

    make_here DESTDIR="$scratch/root" install
    installed=$(find "$scratch/root" -name '*.lua')
    version=${installed##*/}
    version=${version%.lua}
    prefix=$(sed -n 's/^setenv CDDP_ROOT //p' "${installed%.lua}")
    mkdir -p "$scratch/modules/cddp" "$scratch/modules/hdf5" "$scratch/home"
    for file in "$installed" "${installed%.lua}"; do
        sed "s|$prefix|$scratch/root$prefix|g" "$file" \
            >"$scratch/modules/cddp/${file##*/}"
    done
    file=$(find "$scratch/root" -name cddp.pc)
    sed -i "s|$prefix|$scratch/root$prefix|g" "$file"
    cp -a "$scratch/root$prefix" "$scratch/next"
    for file in next next.lua; do
        make_here "$scratch/modules/cddp/$file" prefix="$scratch/next" \
            MODULE="$scratch/modules/cddp/next" PACKAGE_VERSION=next \
            MODULE_REQUIRES=hdf5/1.14
    done
    printf '#%%Module1.0\nsetenv HDF5_HERE 1.14\n' >"$scratch/modules/hdf5/1.14"
    echo 'setenv("HDF5_HERE", "1.14")' >"$scratch/modules/hdf5/1.14.lua"
}

# use TOOL COMMAND...: as a user of it would.
use()
{
    local tool=$1 out

    tested=$((tested + 1))
    out=$(env -i HOME="$scratch/home" PATH=/usr/bin:/bin TERM=dumb LANG=C.UTF-8 \
        LD_LIBRARY_PATH=/opt/other/lib CC="$CC" \
        bash "$source/tests/site/module_user.sh" \
        "$scratch/modules" "$version" "$scratch/root$prefix" "$scratch/next" \
        "$@" 2>&1) || {
        echo "FAIL: $tool"
        echo "$out"
        failed=1
    }
}

if [ -n "$lua" ] && [ -n "$lmod" ] || [ -n "$tclsh" ] && [ -n "$modulecmd" ]; then
    install_versions
fi
if [ -n "$lua" ] && [ -n "$lmod" ]; then
    use lmod "$lua" "$lmod"
else
    echo "not tested with Lmod: it is neither installed nor in $tools/lmod" \
        "(tests/site/unpack)"
fi
if [ -n "$tclsh" ] && [ -n "$modulecmd" ]; then
    use tcl "$tclsh" "$modulecmd"
else
    echo "not tested with Environment Modules: tclsh and modulecmd.tcl were" \
        "neither found installed nor in $tools/tcl (tests/site/unpack)"
fi
[ $tested -gt 0 ] || exit 77
exit $failed
