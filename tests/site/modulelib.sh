# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # set for the test, or by it
#
# What tests of the environment modules share. The test sets $build, the build
# directory, and $scratch, a directory of its own; the functions set variables.
#   $tools            where tests/site/unpack has put the tools, if it was run
#   module_tools DIR  the tools that are installed or below DIR: $lua and $lmod for
#                     Lmod, $tclsh and $modulecmd for Environment Modules. $lmod or
#                     $modulecmd is empty where a part is missing
#   make_here WORD... a separate make in the build directory, without the jobs of
#                     the make that runs the test
#   module_install    install cddp in $root, below $scratch, with the modules
#                     $scratch/modules/cddp/$version and $version.lua; the
#                     configured prefix is $prefix

tools=${CDDP_MODULES:-${XDG_CACHE_HOME:-${HOME-}/.cache}/cddp-modules}

# Print the first path that exists.
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

module_tools()
{
    lua=$(first "$1/lmod/usr/bin/lua5.3" /usr/bin/lua5.3 /usr/bin/lua)
    lmod=$(first "$1"/lmod/usr/share/lmod/[0-9]*/libexec/lmod \
        /usr/share/lmod/[0-9]*/libexec/lmod /usr/share/lmod/lmod/libexec/lmod)
    [ -n "$lua" ] || lmod=
    tclsh=$(command -v tclsh || command -v tclsh8.6 || true)
    modulecmd=$(first "$1"/tcl/usr/lib/*/modulecmd.tcl \
        /usr/lib/*/modulecmd.tcl /usr/share/Modules/libexec/modulecmd.tcl)
    [ -n "$tclsh" ] || modulecmd=
}

make_here()
{
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -C "$build" "$@" \
        >"$scratch/make.log" 2>&1 && return
    echo "FAIL: make $*"
    tail -n 20 "$scratch/make.log"
    exit 1
}

# The files are made for the configured prefix, so those with its name get the one
# of the directory below which they lie here.
module_install()
{
    local file installed

    make_here DESTDIR="$scratch/root" install
    installed=$(find "$scratch/root" -name '*.lua')
    version=${installed##*/}
    version=${version%.lua}
    prefix=$(sed -n 's/^setenv CDDP_ROOT //p' "${installed%.lua}")
    root=$scratch/root$prefix
    mkdir -p "$scratch/modules/cddp"
    for file in "$installed" "${installed%.lua}"; do
        sed "s|$prefix|$root|g" "$file" >"$scratch/modules/cddp/${file##*/}"
    done
    file=$(find "$scratch/root" -name cddp.pc)
    sed -i "s|$prefix|$root|g" "$file"
}
