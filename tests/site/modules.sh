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
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
tested=0

# shellcheck source=SCRIPTDIR/modulelib.sh
. "$source/tests/site/modulelib.sh"
module_tools "$tools"

# The version that is installed, and one for which `make` writes the modules with a
# prefix of its own.
install_versions()
{
    local file

    module_install
    mkdir -p "$scratch/modules/hdf5" "$scratch/home"
    cp -a "$root" "$scratch/next"
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
        "$scratch/modules" "$version" "$root" "$scratch/next" \
        "$@" 2>&1) || {
        echo "FAIL: $tool"
        echo "$out"
        failed=1
    }
}

if [ -n "$lmod$modulecmd" ]; then
    install_versions
fi
if [ -n "$lmod" ]; then
    use lmod "$lua" "$lmod"
else
    echo "not tested with Lmod: it is neither installed nor in $tools/lmod" \
        "(tests/site/unpack)"
fi
if [ -n "$modulecmd" ]; then
    use tcl "$tclsh" "$modulecmd"
else
    echo "not tested with Environment Modules: tclsh and modulecmd.tcl were" \
        "neither found installed nor in $tools/tcl (tests/site/unpack)"
fi
[ $tested -gt 0 ] || exit 77
exit $failed
