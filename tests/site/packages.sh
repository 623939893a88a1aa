#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# packages.py checks that the recipes for Spack and EasyBuild (docs/admin) say nothing
# that configure does not know. Neither tool is needed. This script also checks that
# docs/ADMIN.md names the Debian packages of .ci/install.sh.
source=${srcdir:-.}
# shellcheck source=SCRIPTDIR/../../.ci/install.sh
. "$source/.ci/install.sh"
# Both lists leave out what is not for building. In the guide these are the words of the
# command, and lmod. In .ci/install.sh these are Slurm's plugin, and the library that only
# tests use.
named=$(awk '/^apt-get install/ {on = 1}
    on {for (i = 1; i <= NF; i++) if ($i ~ /^[a-z].*[a-z0-9]$/) print $i}
    !/\\$/ {on = 0}' "$source/docs/ADMIN.md" |
    grep -vxE 'apt-get|install|lmod' | sort)
# shellcheck disable=SC2086 # lists of words
built=$(printf '%s\n' $build_packages $optional_packages |
    grep -vxE 'slurm-wlm-mpi-plugins|libclang-rt-dev' | sort)
diff <(echo "$named") <(echo "$built") || {
    echo "FAIL: docs/ADMIN.md (<) does not name the packages of .ci/install.sh (>)"
    exit 1
}
if ! command -v python3 >/dev/null; then
    echo "SKIP: python3 is missing"
    exit 77
fi
exec python3 "$source/tests/site/packages.py" "$source"
