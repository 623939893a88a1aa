#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# usage: admin-guide.sh DIR [SUITE]
#
# Execute the commands of docs/ADMIN.md and docs/USER.md on an empty machine. DIR becomes
# a root directory of a release of Debian (bookworm) with apt and nothing else
# (mmdebstrap). Root executes the blocks ```sh of ADMIN.md there, in their order, in one
# shell. Then a cluster of two nodes is started. On this cluster an ordinary account
# executes the blocks ```sh user of ADMIN.md, and the blocks of USER.md, in login shells.
# Remove DIR before a second call, which otherwise finds what the first one has
# installed. Needs root, and an hour on a slow machine.
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=SCRIPTDIR/../../.ci/install.sh
. "$tree/.ci/install.sh"
# shellcheck source=SCRIPTDIR/rootlib.sh
. "$tree/tests/site/rootlib.sh"
account=physicist

# blocks GUIDE KIND: print the blocks that begin with ```KIND, an expression.
blocks()
{
    awk -v begin="^\`\`\`($2)\$" '$0 ~ begin {copy = 1; next}
        /^```/ {copy = 0}
        copy' "$tree/docs/$1"
}

# as_account FILE: execute the commands in FILE, on the cluster. sbatch waits for the
# end of its job.
as_account()
{
    # shellcheck disable=SC2016 # for its shell
    "$tree/slurm/devcluster" exec bash -c 'cd "/home/$1" && exec setpriv \
        --reuid="$1" --regid="$1" --init-groups env -i "HOME=$PWD" "USER=$1" \
        TERM=dumb LANG=C.UTF-8 SBATCH_WAIT=1 "SLURM_CONF=$SLURM_CONF" \
        bash --login -ev "$2"' bash "$account" "$1"
}

# Install what a site has before it installs cddp: Slurm, a user, and the Python that
# USER.md asks for.
site_make()
{
    install_packages slurm-wlm slurm-client munge iproute2 util-linux procps \
        python3-h5py
    install_optional slurm-wlm-mpi-plugins
    id "$account" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$account"
    "$tree/slurm/devcluster" up
}

guide_inside()
{
    cd "$tree"
    apt-get -qq update
    blocks ADMIN.md sh >/root/commands
    say "the commands of ADMIN.md"
    DEBIAN_FRONTEND=noninteractive bash -ev /root/commands
    site_make
    blocks ADMIN.md "sh user" >"/home/$account/first"
    blocks USER.md "sh( slurm)?" >"/home/$account/guide"
    say "the commands of an ordinary account in ADMIN.md"
    as_account first
    say "the commands of USER.md"
    as_account guide
    grep -h '^final: ' "/home/$account"/slurm-*.out
    "$tree/slurm/devcluster" down
    say "all commands of docs/ADMIN.md and docs/USER.md have worked"
}

if [ "${1-}" = --inside ]; then
    guide_inside
    exit
fi
[ $# -gt 0 ] || stop "usage: $me DIR [SUITE]"
[ "$(id -u)" -eq 0 ] || stop "namespaces need root"
mkdir -p "$1"
root=$(cd "$1" && pwd)
root_make "$root" "${2:-bookworm}"
source_copy "$root"
root_enter "$root"
