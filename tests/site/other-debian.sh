#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# usage: other-debian.sh DIR [SUITE [ARGUMENT OF make...]]
#
# Test this checkout on another release of Debian (trixie), with its own Slurm,
# PMIx and HDF5. DIR becomes a root directory of that release (mmdebstrap, 1.5
# GB, minutes; later calls use it again). The files of git are copied into it,
# built there, and tested by make ARGUMENT... (check-slurm). Needs root.
#
#     other-debian.sh /srv/trixie trixie check-slurm SLURM_TESTS="batch.t time.t"
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=SCRIPTDIR/../../.ci/install.sh
. "$tree/.ci/install.sh"
# shellcheck source=SCRIPTDIR/rootlib.sh
. "$tree/tests/site/rootlib.sh"

# In the other release: install what a build and the tests need, without the
# programs that only read the source.
test_inside()
{
    local package packages=() lint="ccache clang.*|cppcheck|shellcheck|.*-ctags"

    for package in $build_packages $test_packages; do
        [[ $package =~ ^($lint)$ ]] || packages+=("$package")
    done
    install_packages "${packages[@]}"
    # shellcheck disable=SC2086 # a list of words
    install_optional $optional_packages
    cd "$tree"
    build_in build --enable-checks --with-cuda-arch=none
    say "Debian $(cat /etc/debian_version), $(slurmctld -V)"
    make -C build "$@"
}

if [ "${1-}" = --inside ]; then
    shift
    test_inside "$@"
    exit
fi
[ $# -gt 0 ] || stop "usage: $me DIR [SUITE [ARGUMENT OF make...]]"
[ "$(id -u)" -eq 0 ] || stop "namespaces need root"
mkdir -p "$1"
root=$(cd "$1" && pwd)
suite=${2:-trixie}
shift $(($# > 1 ? 2 : 1))
[ $# -gt 0 ] || set -- check-slurm
root_make "$root" "$suite"
source_copy "$root"
root_enter "$root" "$@"
