#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Each file that `make install` installs is used by a test. `make uninstall` leaves no
# file and no directory of cddp, except directories that have files of others.
source=${srcdir:-.}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

# A separate make, without the jobs of `make check`.
make_here()
{
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" DESTDIR="$root" "$@" \
        >"$scratch/log" 2>&1 && return
    echo "FAIL: make $*"
    tail -n 20 "$scratch/log"
    exit 1
}

# Each line has: a pattern for the end of a file's name; the test that uses this file;
# a text in the test that shows this use. If the test uses the file in the sources, the
# line also has its directory there. A line with "-" is for a document that no test
# uses. The first line whose pattern fits counts.
users="
bin/cddp-*                  tests/site/module_user.sh   --version
man1/cddp-*.1               tests/site/module_user.sh   share/man/man1
completions/cddp-*          tests/site/module_user.sh   bash-completion
include/cddp/*.h            tests/site/module_user.sh   include/cddp
libcddp.*                   tests/site/module_user.sh   -lcddp
pkgconfig/cddp.pc           tests/site/module_user.sh   pkg-config
cddp/libcddp_cuda.*         tests/cmd/cuda_plugin.sh    libcddp_cuda
cddp/[0-9]*                 tests/site/modules.sh       module_install
cddp/train.sbatch           tests/slurm/site.t          share/cddp/train.sbatch
cddp/slurm.conf.example     tests/site/slurm_conf.sh    slurm.conf.example slurm
maps/*.map                  tests/cmd/test_ckpt_maps.c  share/maps         share/maps
examples/c/own-loop.c       tests/site/module_user.sh   own-loop.c         examples/c
examples/c/plugin*.c        tests/api/plugin.sh         examples/c/plugin  examples/c
examples/README.md          -                           -                  examples
examples/data-*.yaml        tests/cmd/examples_data.sh  examples           examples
examples/*.yaml             tests/cmd/examples.sh       examples           examples
cddp/USER.md                tests/cmd/user_guide.sh     USER.md            docs
cddp/ADMIN.md               tests/site/admin-guide.sh   ADMIN.md           docs
cddp/CONFIG.md              tests/cmd/cddp_train.sh     CONFIG.md          docs
cddp/FAULTS.md              tests/slurm/faults          FAULTS.md          docs
cddp/README.md              -                           -                  .
cddp/NEWS                   -                           -                  .
cddp/LICENSE                -                           -                  .
cddp/*.md                   -                           -                  docs"

# used FILE: a test uses FILE. If the test uses the file in the sources, both are equal.
used()
{
    local pattern test text from

    while read -r pattern test text from; do
        # shellcheck disable=SC2053 # a pattern
        [[ -n $pattern && $1 == */$pattern ]] || continue
        [ "$test" = - ] || grep -qF -e "$text" "$source/$test" || {
            echo "FAIL: $test does not use $1: it has no \"$text\""
            return 1
        }
        [ -z "$from" ] || cmp "$1" "$source/$from/${1##*/}"
        return
    done <<<"$users"
    echo "FAIL: no test uses $1"
    return 1
}

make_here install
failed=0
while IFS= read -r file; do
    used "$file" || failed=1
done < <(find "$root" ! -type d)
[ $failed = 0 ] || exit 1
modules=$(dirname "$(find "$root" -name '*.lua')")
for file in train.sbatch cddp-train cddp.pc own-loop.c cddp-train.1; do
    [ -n "$(find "$root" -type f -name $file)" ] || {
        echo "FAIL: $file was not installed"
        exit 1
    }
done
make_here uninstall
left=$(find "$root" ! -type d -o -path '*/share/cddp' -o -path '*/doc/cddp' \
    -o -path '*/include/cddp' -o -path "$modules")
[ -z "$left" ] || {
    echo "FAIL: make uninstall left: $left"
    exit 1
}
make_here install
touch "$modules/other"
make_here uninstall
left=$(find "$root" ! -type d)
[ "$left" = "$modules/other" ] || {
    echo "FAIL: make uninstall left: $left"
    exit 1
}
