# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
# Sourced by tests that use the installed library. Installs libcddp, its headers
# and its .pc file below $scratch, and defines how a user's program is compiled.
# $source and $build are the source and the build tree. Without pkg-config or a
# compiler the test ends as skipped (77). $SANITIZE (from tests/sanitize) has
# flags for programs that use a library built with sanitizers.
CC=${CC:-cc}
SANITIZE=${SANITIZE:-}
# A leak in our own programs is a failure; Criterion's own leaks are not.
[ -z "$SANITIZE" ] ||
    export LSAN_OPTIONS=${LSAN_OPTIONS/exitcode=0/exitcode=23}
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

for tool in pkg-config "${CC%% *}"; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIP: $tool was not found"
        exit 77
    fi
done

# A separate make, which gets no jobs and flags from that of `make check`.
if ! out=$(env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -C "$build" \
    DESTDIR="$scratch/root" install-libLTLIBRARIES \
    install-dist_cddpincludeHEADERS install-nodist_cddpincludeHEADERS \
    install-nodist_pkgconfigDATA 2>&1); then
    echo "FAIL: install: $out"
    exit 1
fi
pc=$(find "$scratch/root" -name cddp.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$scratch/root
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail()
{
    echo "FAIL: $*"
    failed=1
}

# compile SOURCE OUT [FLAG...]: compile as a user would, with all warnings.
compile()
{
    local from=$1 to=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # lists of words
    $CC -std=c11 -Wall -Wextra -Werror -O1 $SANITIZE "$from" "$@" \
        $(pkg-config --cflags --libs cddp) -o "$to"
}
