# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
# shellcheck disable=SC2154 # $tree and $me are set by the script
#
# This file is for scripts that test cddp in a root directory of another release of
# Debian. Before a script sources this file, it sets $tree, the checkout, and sources
# .ci/install.sh.
#   root_make DIR SUITE      make the root directory, unless it is there
#   source_copy DIR          copy the checkout into it, to $inside
#   root_enter DIR ARG...    run the copy of the script there, with --inside ARG...
# Needs root. All mounts and processes are in namespaces that end with the script. The
# network is that of this machine, because apt needs it.

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
    mmdebstrap --variant=apt --include=mount "$2" "$1" "$(mirror)"
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
    [ -e "$1/etc/hosts" ] || echo "127.0.0.1 localhost" >"$1/etc/hosts"
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
        "$inside/tests/site/$me" --inside "$@"
}
