#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Every run file in examples/ trains: a few steps on a small data set, with the
# large networks made narrow.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data/ising --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make bytes -o data/bytes --valid 30 --bytes 20000 \
    "$source/examples" "$source/docs/man" >/dev/null || exit 1

for file in "$source"/examples/*.yaml; do
    name=$(basename "$file" .yaml)
    small=() steps=3
    case $name in
    gpt*) small=(--set model.width=16) steps='[0-9]+' ;;
    preset-resnet* | preset-unet* | preset-deepcam)
        small=(--set model.width=2) ;;
    esac
    if ! out=$("$build/cddp-train" --set train.epochs=1 --set train.batch=8 \
        --set run.dir="run-$name" "${small[@]}" "$file" 2>&1) ||
        ! grep -qE "^final: .*after $steps steps" <<<"$out"; then
        echo "FAIL: $name: $out"
        failed=1
    fi
done
exit $failed
