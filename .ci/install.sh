# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# For quickstart and run-tests (sourced): Debian and Ubuntu packages, and the
# steps of a build. Every step says what it does; a failure is one sentence.
# shellcheck shell=bash

# What a build needs, and what the tests need on top of it.
build_packages="autoconf automake libtool m4 pkg-config make gcc libc6-dev
    libpmix-dev libucx-dev libhdf5-openmpi-dev libopenmpi-dev libdnnl-dev
    libyaml-dev libjansson-dev libxxhash-dev libhwloc-dev
    zlib1g-dev"
test_packages="libcriterion-dev ccache clang clang-format clang-tidy cppcheck
    shellcheck universal-ctags slurm-wlm slurm-client munge iproute2 util-linux procps
    openmpi-bin ucx-utils libhdf5-dev hdf5-tools python3 python3-h5py python3-yaml man-db
    strace git libfaketime"
# Where Slurm's PMIx plugin and clang's libFuzzer have packages of their own; what
# TensorBoard's files, the plots of cddp-report, what cddp-data needs for
# pictures, texts and .npz files, and what decodes chunks of data.
optional_packages="slurm-wlm-mpi-plugins libclang-rt-dev libprotobuf-c-dev
    protobuf-c-compiler libisal-dev libjs-dygraphs gnuplot-nox
    libpng-dev libjpeg-dev libzip-dev libpcre2-dev libzstd-dev libblosc-dev
    libdeflate-dev"

me=${0##*/}

say() {
    echo "$me: $*"
}

stop() {
    echo "$me: $*" >&2
    exit 1
}

package_here() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

package_known() {
    local policy
    policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)
    [[ $policy == *"Candidate: "[!\(]* ]]
}

# as_root COMMAND...: by sudo unless we are root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Print the packages among "$@" that are not installed.
packages_missing() {
    local package
    for package in "$@"; do
        package_here "$package" || echo "$package"
    done
}

apt_update() {
    say "apt-get update"
    as_root apt-get -qq update || say "some package lists could not be read"
}

# install_packages PACKAGE...: those that are missing. Does nothing, quickly,
# when all are there.
install_packages() {
    local missing package unknown=""
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "this is not Debian or Ubuntu, so nothing is installed;" \
            "configure will name what is missing"
        return
    fi
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    say "these Debian packages are missing and will be installed:" \
        "${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            stop "not root and no sudo: ask an administrator to run" \
                "apt-get install ${missing[*]}"
        sudo -n true 2>/dev/null || [ -t 0 ] ||
            stop "sudo asks for a password but there is no terminal: run" \
                "sudo apt-get install ${missing[*]}"
    fi
    for package in "${missing[@]}"; do
        package_known "$package" || unknown="$unknown $package"
    done
    [ -z "$unknown" ] || apt_update
    for package in $unknown; do
        package_known "$package" ||
            stop "apt does not know the package $package: on Ubuntu enable the" \
                "universe repository (add-apt-repository universe)"
    done
    apt_install "${missing[@]}" || { apt_update && apt_install "${missing[@]}"; } ||
        stop "apt-get could not install: ${missing[*]}"
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends "$@" >/dev/null
}

# Optional packages: installed where apt knows them, no word where it does not.
install_optional() {
    local package
    command -v apt-cache >/dev/null || return 0
    for package in "$@"; do
        ! package_known "$package" || install_packages "$package"
    done
}

# run_step LOG WHAT COMMAND...: output goes to LOG; its end is shown on failure.
run_step() {
    local log=$1 what=$2
    shift 2
    say "$what"
    "$@" >"$log" 2>&1 || {
        tail -25 "$log" >&2
        stop "$what failed; all of its output is in $log"
    }
}

# Set $ccache to the words ahead of a compiler's name: "ccache " if there is one.
# What was compiled in another clone of this repository serves this one, too.
use_ccache() {
    ccache=""
    command -v ccache >/dev/null || return 0
    ccache="ccache "
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
}

# build_in DIR CONFIGURE-ARGUMENT...: from nothing, or what has changed.
build_in() {
    local dir=$1
    shift
    [ ! -f config.status ] ||
        stop "this tree was configured in place: run make distclean first"
    mkdir -p "$dir"
    [ -x configure ] || run_step "$dir/autoreconf.log" "autoreconf -fi" \
        autoreconf -fi
    [ -f "$dir/Makefile" ] ||
        run_step "$dir/configure.log" "configure in $dir $*" \
            env -C "$dir" "$PWD/configure" "$@"
    run_step "$dir/make.log" "make in $dir" make -C "$dir" -j "$(nproc)" all
}
