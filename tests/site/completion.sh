#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# What bash offers for the words of a command line, and that the commands accept
# each option that it offers.
build=$PWD
failed=0

# offered WORD...: the line so far, of which the last word is completed. Prints what
# bash offers.
offered()
{
    local function

    function=$(complete -p "$1") && function=${function#*-F }
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    "${function%% *}" "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
}

# expect WHAT WORD...: the list WHAT is offered.
expect()
{
    local found

    found=$(offered "${@:2}") || found="(status $?)"
    [ "$found" = "$1" ] && return
    echo "FAIL: ${*:2}: bash offers '$found', expected '$1'"
    failed=1
}

for file in "$build"/completion/cddp-*; do
    # shellcheck disable=SC1090
    . "$file" || exit 1
done
expect "--check" cddp-train --ch
expect "--resume" cddp-srun --res
expect "--srun" cddp-srun --sr
expect "train.epochs=" cddp-train --set train.ep
expect "train.epochs=" cddp-train --set = train.ep
expect "ddp.backend=" cddp-bench step --set ddp.back
expect "never" cddp-train --resume n
expect "" cddp-train run.
expect "allreduce io step" cddp-bench ""
expect "load read write" cddp-bench io ""
expect "--layout" cddp-bench io read --lay
expect "gzip" cddp-bench io read --layout g
expect "--tune" cddp-bench allreduce --tu
expect "" cddp-bench step --tu
expect "convert index info make shard split stats verify" cddp-data ""
expect "fields" cddp-data make f
expect "--shards" cddp-data make ising --shar
expect "--gzip" cddp-data convert idx --gz
expect "" cddp-data make ising --gz
expect "--by-class" cddp-data split --by
expect "" cddp-data shard --by
expect "--yaml" cddp-data stats --ya
expect "list" cddp-ckpt li
expect "--topology" cddp-info --to

# A word that no command knows follows, so none of them does anything.
for program in train srun "bench step" "bench allreduce" "bench io" "data make ising" "data convert idx" \
    "data shard" "data split" "data stats"; do
    read -ra words <<<"cddp-$program"
    for option in $(offered "${words[@]}" --); do
        [[ $option != --help && $option != --version ]] || continue
        out=$(cd / && "$build/${words[0]}" "${words[@]:1}" "$option" \
            --no-such-option </dev/null 2>&1)
        [[ $out != *"unknown option $option"* && -n $out ]] || {
            echo "FAIL: cddp-$program $option: $out"
            failed=1
        }
    done
done
exit $failed
