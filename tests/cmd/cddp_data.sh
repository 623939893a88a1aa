#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The command line of cddp-data: exit statuses and error messages.
set -u
data=./cddp-data
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# expect STATUS PATTERN ARGUMENT...: PATTERN must be in the output or the
# errors.
expect() {
    local status=$1 pattern=$2 out
    shift 2
    out=$("$data" "$@" 2>&1)
    local found=$?
    if [ $found -ne "$status" ] || ! grep -q -- "$pattern" <<<"$out"; then
        echo "FAIL: cddp-data $*: expected status $status and \"$pattern\"," \
            "found status $found and: $out"
        failed=1
    fi
}

expect 0 'usage: cddp-data make ising -o DIR' --help
expect 0 'usage: cddp-data' make --help
expect 0 'cddp-data [0-9]' --version
expect 64 'a command is missing'
expect 64 'did you mean verify?' verfy
expect 64 'unknown command xyzzy' xyzzy
expect 64 'o DIR is missing' make ising
expect 64 'there are: ising, fields, bytes' make -o "$scratch/a"
expect 64 'there are: ising, fields, bytes' make potts -o "$scratch/a"
expect 64 'there is no option --seed' make bytes -o "$scratch/b" --seed 1
expect 64 'valid is a part in per cent' make bytes -o "$scratch/b" --valid 100
expect 64 'make bytes: -o DIR is missing' make bytes
expect 0 'for training, .* for validation, of [0-9]* texts' \
    make bytes -o "$scratch/b" --valid 30 "${srcdir:-.}/examples" \
    "${srcdir:-.}/docs/man"
expect 0 '/tokens  *uint8' info "$scratch/b/valid-00.h5"
expect 0 '^ok .*train-00.h5: 1 datasets' verify "$scratch/b/train-00.h5"
expect 64 'unknown option --sede; try' make ising -o "$scratch/a" --sede 1
expect 64 'unknown option -f; try' make ising -f
expect 64 'option --seed needs a value' make ising --seed
expect 64 'option -o needs a value' make ising -o
expect 64 'option --force=1 takes no value' make ising --force=1
expect 64 '--train: expected an integer from 1' make ising -o x --train 0
expect 64 '--seed: .*found "1x"' make ising -o x --seed 1x
expect 64 'without a sample' make ising -o x --train 3 --shards 4
expect 64 'there is no option --edge' make ising -o x --edge 8
expect 64 'expected a power of two, found 12' make fields -o x --edge 12
expect 64 '--edge: expected an integer from 4' make fields -o x --edge 2
expect 64 'without a sample' make fields -o x --valid 1 --shards 4
expect 0 'best constant guess: accuracy [0-9.]* % for /web' \
    make fields -o "$scratch/f" --edge 8 --train 8 --valid 4 --shards 2
expect 64 'add --force' make fields -o "$scratch/f" --edge 8
expect 0 '/web  *uint8  *\[4, 8, 8, 8\]' info "$scratch/f/train-01.h5"
expect 64 'name at least one file' info
expect 64 'unknown option --fast' verify --fast
expect 0 'best energy threshold on valid: accuracy [0-9.]* %' \
    make ising -o "$scratch/a" --train 40 --valid 20 --shards 2
expect 64 'add --force' make ising -o "$scratch/a" --train 40 --valid 20
expect 0 'best |magnetisation| threshold' \
    make ising --train 40 --valid 20 --force -o "$scratch/a"
expect 0 '/spins  *int8  *\[10, 32, 32\]' info "$scratch/a/train-00.h5"
expect 64 'name a kind of files' convert
expect 64 'name a kind of files' convert npy -o "$scratch/c"
expect 64 'there are: npy, npz, idx, csv, images, cifar10, cifar100, raw' convert nyp -o "$scratch/c" x=y
expect 64 'o DIR is missing' convert npy x=y
expect 64 'are for raw files' convert npy -o "$scratch/c" --shape 3 x=y
expect 64 'are for csv files' convert npy -o "$scratch/c" --target 3 x=y
expect 64 'are for images' convert npy -o "$scratch/c" --crop 3 x=y
expect 64 '--threads' convert images -o "$scratch/c" --threads 0 "$scratch"
expect 64 'skip: expected a number' convert raw -o "$scratch/c" --skip -1 x=y
expect 64 '--gzip' convert raw -o "$scratch/c" --gzip 10 x=y
expect 64 '--name: ' convert raw -o "$scratch/c" --name a/b x=y
printf 'abcdefghijkl' >"$scratch/raw"
raw() { # STATUS PATTERN [OPTION...]: convert 3 samples of 2 int16
    expect "$1" "$2" convert raw -o "$scratch/c" --type int16 --shape 2 "${@:3}" \
        pair="$scratch/raw"
}
raw 0 '3 samples of train in 1 shard '
raw 64 'add --force'
raw 0 'in 3 shards' --force --shards 3 --gzip 9
raw 0 'of valid in 1 shard' --name valid --chunk 1
raw 64 'only 3 samples' --force --shards 4
expect 0 '/pair  *int16  *\[1, 2\] chunked, filtered' info "$scratch/c/train-02.h5"
expect 0 '/pair  *int16  *\[3, 2\] chunked$' info "$scratch/c/valid-00.h5"
expect 0 '^ok .*train-02.h5: 1 datasets' verify "$scratch"/c/*.h5
raw 65 '12 bytes' --force --skip 5
expect 0 '/pair  *int16  *\[1, 2\]' info "$scratch/c/train-00.h5"
printf 'a,b,kind\n1,2,0\n3,x,1\n' >"$scratch/t.csv"
expect 65 't.csv:3: column b: .*"x"' convert csv -o "$scratch/t" "$scratch/t.csv"
expect 0 '/input  *float32  *\[\]' \
    convert csv -o "$scratch/t" --input a --target kind "$scratch/t.csv"
# As the permissions of new files are: of the umask.
(umask 027 && raw 0 'train in 1 shard' --force && exit $failed) || failed=1
[ "$(stat -c %a "$scratch/c/train-00.h5")" = 640 ] || {
    echo "FAIL: a shard does not have the permissions that umask leaves"
    failed=1
}
[ "$(ls "$scratch/c")" = "$(printf 'train-00.h5\nvalid-00.h5')" ] || {
    echo "FAIL: old shards or drafts are left"
    failed=1
}
# A full disk: status 74, and nothing is left behind.
mkdir "$scratch/full"
head -c 1000000 /dev/zero >"$scratch/zeros"
# shellcheck disable=SC2016 # for the shell inside
out=$(unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs "$1/full" || exit 99
    "$2" convert raw -o "$1/full" --type uint8 --shape 10 x="$1/zeros" 2>&1
    echo "status $? left:$(ls -A "$1/full")"' - "$scratch" "$data" 2>/dev/null)
found=$?
if [ $found -ne 0 ]; then
    echo "not tested: a full disk (no right to mount one)"
elif ! grep -q 'train-00.h5' <<<"$out" || ! grep -q '^status 74 left:$' <<<"$out"; then
    echo "FAIL: a full disk: $out"
    failed=1
fi
expect 65 'no such file' info "$scratch/none.h5"
expect 0 '^ok .*train-03.h5: 4 datasets' verify "$scratch"/a/*.h5
echo 'not HDF5' >"$scratch/text.h5"
expect 65 '1 of 2 files are bad' verify "$scratch/text.h5" \
    "$scratch/a/train-00.h5"
expect 65 'another format\|of another format' info "$scratch/text.h5"
exit $failed
