#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# usage: module_user.sh MODULES VERSION ROOT NEXT TOOL COMMAND...
#
# What a user does with the modules cddp/VERSION (installed in ROOT) and cddp/next
# (in NEXT; it loads hdf5/1.14 first) of the folder MODULES, with TOOL (lmod or
# tcl), whose program is COMMAND. In an environment without other modules.
modules=$1 version=$2 root=$3 next=$4 tool=$5
shift 5
command=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What `module` is in a shell of its users.
module()
{
    local code status

    code=$("${command[@]}" bash "$@" 2>"$work/said")
    status=$?
    eval "$code" && return $status
}
fail()
{
    echo "$*"
    cat "$work/said"
    exit 1
}
# The environment without what the tools keep for themselves.
environment()
{
    env -0 | sort -z | tr '\0\n' '\n ' |
        grep -vE '^(_|__?MODULES|_LMFILES_|LOADEDMODULES|_ModuleTable|__LMOD|_?LMOD_|MODULE)'
}
# said WORDS: the last `module` printed this.
said()
{
    grep -qF -- "$1" "$work/said" || fail "module does not say: $1"
}
expect()
{
    [ "${!1-}" = "$2" ] || fail "$1 is '${!1-}', expected '$2'"
}

# A system may have man without the pages.
pages=no
! man -w man >/dev/null 2>&1 || pages=yes

module use "$modules" || fail "module use"
environment >"$work/before"

module help "cddp/$version"
said "srun --mpi=pmix cddp-train RUN.yaml"
said "sbatch $root/share/cddp/train.sbatch RUN.yaml"
module whatis "cddp/$version"
said "distributed training of neural networks on Slurm"
module avail
said "cddp/$version"
said cddp/next
! grep -q '\.lua' "$work/said" || fail "the same version is listed twice"

# Variables, commands, manual pages: also those of others.
module load "cddp/$version" || fail "module load cddp/$version"
expect CDDP_ROOT "$root"
expect LD_LIBRARY_PATH "$root/lib:/opt/other/lib"
expect SLURM_WAIT 120
expect SLURM_PMIX_TIMEOUT 60
expect SLURM_PMIX_FENCE ring
expect OMPI_MCA_io ^ompio
expect HDF5_USE_FILE_LOCKING FALSE
expect HDF5_HERE ""
[ -f "$CDDP_ROOT/share/cddp/train.sbatch" ] || fail "there is no template"
[ "$(command -v cddp-train)" = "$root/bin/cddp-train" ] || fail "cddp-train"
# The module makes each program, its manual page and its completion available.
for path in "$root"/bin/*; do
    name=${path##*/}
    [ "$(command -v "$name")" = "$path" ] || fail "$name: PATH=$PATH"
    out=$("$name" --version) || fail "$name: $out"
    [[ ${out%%$'\n'*} == "$name $version"* ]] || fail "$name --version: $out"
    [ $pages = no ] || [ "$(man -w "$name")" = "$root/share/man/man1/$name.1" ] ||
        fail "no man page of $name: MANPATH=$MANPATH"
    # shellcheck disable=SC1090
    . "$root/share/bash-completion/completions/$name" && complete -p "$name" >"$work/said" ||
        fail "$name has no completion"
done
[ $pages = no ] || man -w man >/dev/null ||
    fail "the module hides other man pages: MANPATH=$MANPATH"

# A program: by pkg-config, and without its run path.
if command -v pkg-config >/dev/null && command -v "${CC%% *}" >/dev/null; then
    own=$root/share/doc/cddp/examples/c/own-loop.c
    for path in "$root"/include/cddp/*.h; do
        # shellcheck disable=SC2086
        echo "#include <cddp/${path##*/}>" |
            $CC -std=c11 -Wall -Werror -fsyntax-only -xc - >"$work/said" 2>&1 ||
            fail "${path##*/} cannot be included alone"
    done
    # shellcheck disable=SC2046,SC2086 # lists of words
    $CC -std=c11 "$own" $(pkg-config --cflags --libs cddp) -o "$work/by-pc" ||
        fail "own-loop.c cannot be compiled"
    # shellcheck disable=SC2086
    $CC -std=c11 "$own" -lcddp -o "$work/by-name" ||
        fail "own-loop.c cannot be compiled with -lcddp"
    for program in by-pc by-name; do
        out=$("$work/$program" 1 2>&1) || fail "$program: $out"
        [[ ${out##*$'\n'} == "1 ranks: w 3.000 b -1.000" ]] ||
            fail "$program: $out"
    done
    [[ $(ldd "$work/by-name") == *" $root/lib/libcddp.so"* ]] || fail "by-name"
else
    echo "not tested: a program, for lack of a compiler or pkg-config"
fi

# The other version: Lmod replaces the first one, Environment Modules refuses, and
# is told to.
if [ "$tool" = tcl ]; then
    ! module load cddp/next || fail "two versions are loaded at a time"
    said conflict
    expect CDDP_ROOT "$root"
    module switch "cddp/$version" cddp/next || fail "module switch"
else
    module load cddp/next || fail "module load cddp/next"
fi
expect CDDP_ROOT "$next"
expect LD_LIBRARY_PATH "$next/lib:/opt/other/lib"
expect HDF5_HERE 1.14
[ "$(command -v cddp-train)" = "$next/bin/cddp-train" ] || fail "cddp-train"

# Nothing is left: not of this version, nor of what it loaded.
module unload cddp/next || fail "module unload"
environment >"$work/after"
diff "$work/before" "$work/after" || fail "module unload left something"
