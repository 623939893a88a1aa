#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# usage: other-debian.sh DIR [SUITE [ARGUMENT OF make...]]
#
# Test this checkout on another release of Debian (trixie), with its own Slurm,
# PMIx and HDF5. DIR becomes a root directory of that release (mmdebstrap, 1.5
# GB, minutes; later calls use it again). The files of git are copied into it,
# built there, and tested by make ARGUMENT... (check-slurm). Needs root. All
# mounts and processes are in namespaces that end with this script; the network
# is that of this machine, as apt needs it.
#
#     other-debian.sh /srv/trixie trixie check-slurm SLURM_TESTS="batch.t time.t"
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=SCRIPTDIR/../../.ci/install.sh
. "$tree/.ci/install.sh"
inside=/src/cddp

# Debian's mirror of this machine.
mirror()
{
    local found

    found=$(apt-get indextargets --format "\$(SITE)" 'Origin: Debian' \
        2>/dev/null | head -n 1) || true
    echo "${found:-http://deb.debian.org/debian}"
}

root_make()
{
    [ ! -x "$1/usr/sbin/policy-rc.d" ] || return 0
    command -v mmdebstrap >/dev/null ||
        stop "mmdebstrap not found: install the package mmdebstrap"
    say "making $1 of Debian $2"
    mmdebstrap --variant=apt "$2" "$1" "$(mirror)"
    # The packages must not start their daemons.
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod +x "$1/usr/sbin/policy-rc.d"
}

# Copy the files of the checkout, without those that git ignores.
source_copy()
{
    mkdir -p "$1$inside"
    git -C "$tree" ls-files -z --cached --others --exclude-standard | (cd "$tree" && xargs -0 ls -d 2>/dev/null) |
        tar -C "$tree" -T - -c | tar -C "$1$inside" -x
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
}

# Run this script --inside. pivot_root and not only chroot, because in a chroot
# no namespace of a user can be made.
root_enter()
{
    local root=$1

    shift
    # shellcheck disable=SC2016 # for the shell in the namespaces
    exec unshare --mount --pid --fork --kill-child bash -euc '
        mount --rbind "$0" "$0"
        cd "$0"
        mount --rbind /dev dev
        mount --rbind /sys sys
        mount -t proc proc proc
        mount -t tmpfs -o mode=755 none run
        pivot_root . .
        umount -l .
        exec /usr/bin/env -i "$@"' "$root" \
        HOME=/root "TERM=${TERM:-dumb}" LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "CDDP_CLUSTERS=${CDDP_CLUSTERS:-1}" \
        "$inside/tests/site/other-debian.sh" --inside "$@"
}

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
