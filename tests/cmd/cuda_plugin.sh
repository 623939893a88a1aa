#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# What the commands do if the CUDA plugin cannot be used, each with a cause of its
# own: with train.device=cuda one sentence and status 69, with auto a run on the
# CPU. The plugin is the real one where it was built, else a stand-in without
# devices. No command gets a library of CUDA by being linked with it.
set -u
source=$(cd "${srcdir:-.}" && pwd)
test=$(cd "$(dirname "$0")" && pwd)/${0##*/}
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

real=$build/.libs/libcddp_cuda.so
good=$real
[ -e "$real" ] || good=$build/tests/dev/.libs/stand_in.so
[ -e "$good" ] || {
    echo "FAIL: there is no $good"
    exit 1
}
id=$("$build/cddp-info" --version | sed -n 's/^.*(build \(.*\))$/\1/p')
cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
cat >run.yaml <<'YAML'
data:
  train: "data/train-*.h5"
  valid: "data/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model:
  input: [1, 32, 32]
  layers: [linear: {out: 2}]
loss: cross_entropy
optimizer: sgd
train: {epochs: 1, batch: 8}
YAML

# altered FROM TO: a copy of the plugin with TO instead of FROM, which is as long
altered() {
    LC_ALL=C sed "s/$1/$2/g" "$good" >altered.so
    ! cmp -s "$good" altered.so || fail "there is no $1 in $good"
}

# refused CAUSE PLUGIN WORD: with this plugin, each command names the cause.
refused() {
    local cause=$1 word=$3 out rc
    export CDDP_CUDA_PLUGIN=$2
    out=$("$build/cddp-train" --fresh --set train.device=cuda run.yaml 2>&1)
    rc=$?
    { [ $rc = 69 ] && grep -q -- "$word" <<<"$out"; } ||
        fail "$cause: cddp-train: status $rc: $out"
    [ "$(grep -c . <<<"$out")" = 1 ] || fail "$cause: more than a line: $out"
    out=$("$build/cddp-train" --check --set train.device=cuda run.yaml 2>&1)
    rc=$?
    { [ $rc = 69 ] && grep -q -- "$word" <<<"$out"; } ||
        fail "$cause: cddp-train --check: status $rc: $out"
    out=$("$build/cddp-bench" step --steps 1 --set train.device=cuda \
        run.yaml 2>&1)
    rc=$?
    { [ $rc = 69 ] && grep -q -- "$word" <<<"$out"; } ||
        fail "$cause: cddp-bench: status $rc: $out"
    out=$("$build/cddp-info" 2>&1)
    rc=$?
    [[ $rc == 0 ]] || fail "$cause: cddp-info: status $rc"
    grep -q "^gpus .*none.*$word" <<<"$out" || fail "$cause: cddp-info: $out"
}

# on_cpu CAUSE PLUGIN: with train.device=auto the run is one on the CPU.
on_cpu() {
    local out
    out=$(CDDP_CUDA_PLUGIN=$2 "$build/cddp-train" --fresh run.yaml 2>&1)
    grep -q '^final: ' <<<"$out" || fail "$1: training under auto: $out"
}

refused absent "$scratch/none.so" none.so
on_cpu absent "$scratch/none.so"
refused "a directory" "$scratch" directory
refused "no library" /dev/null /dev/null
head -c $(($(stat -c %s "$good") / 2)) "$good" >half.so
refused truncated "$scratch/half.so" half.so
on_cpu truncated "$scratch/half.so"
altered "$id" "${id%?????}xxxxx"
refused "other build" "$scratch/altered.so" "$id"
altered cddp_cuda cddp_mine
refused "not ours" "$scratch/altered.so" cddp_cuda
library=libc.so.6
[ "$good" != "$real" ] || library=$(readelf -d "$real" |
    sed -n 's/.*NEEDED.*\[\(libcudnn.*\)\]/\1/p')
altered "$library" "x${library#?}"
refused "a library missing" "$scratch/altered.so" "x${library#?}"
on_cpu "a library missing" "$scratch/altered.so"
if [ "$(id -u)" != 0 ]; then
    cp "$good" closed.so && chmod 0 closed.so
    refused "not readable" "$scratch/closed.so" ermission
else
    echo "not tested as root: a plugin that may not be read"
fi
if [ "$good" != "$real" ]; then
    refused "no devices" "$good" plugin
else
    # With a GPU, this hides it.
    export CUDA_VISIBLE_DEVICES=
    refused "no GPU" "$good" 'driver\|visible'
    on_cpu "no GPU" "$good"
fi

# Which libraries each installed file may need, without their versions. A new
# library must be added here, and must be installed on every node that runs
# cddp.
system='libc|libm|libgcc_s|libdl|libpthread|librt|ld-linux-.*|lib(a|ub|t)san|libz|libsz'
hdf5='libhdf5(_[a-z]+)?|libmpi|libdeflate|libzstd|libblosc' # the last three if installed
all="$system|$hdf5|libhwloc|libyaml-0|libdnnl|lib[gi]?omp5?|libuc[ps]|libpmix"
all="$all|libjansson|libxxhash|libisal|libprotobuf-c" # the last two if installed
images='libpng16|libjpeg|libzip|libpcre2-8' # if installed
while read -r file may; do
    needed=$(readelf -d "$build/$file" |
        sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*\]/\1/p')
    [ -n "$needed" ] || fail "readelf finds no library in $file"
    more=$(grep -vxE "$may" <<<"$needed")
    [ -z "$more" ] || fail "$file needs a library that is new: ${more//$'\n'/ }"
done <<LIST
cddp-train $all
cddp-info $all
cddp-bench $all
cddp-srun $all
cddp-report $system|libyaml-0|libjansson|libxxhash|libisal|libprotobuf-c
cddp-data $system|$hdf5|libjansson|libxxhash|libisal|libpmix|libuc[ps]|$images
cddp-ckpt $system|$hdf5|libjansson|libxxhash
.libs/libcddp.so $all
LIST
# Each installed program must be in the list above.
while read -r file; do
    grep -q "^$file " "$test" || fail "$file is not in the list of this test"
done < <(sed -n 's/^bin_PROGRAMS += *//p' "$source"/src/*/local.mk)
exit $failed
