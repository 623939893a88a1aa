#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Every run file in examples/ trains: a few steps on a small data set, with
# large networks made narrower. Some also learn, on more data.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
cd "$scratch" || exit 1
"$build/cddp-data" make ising -o data/ising --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make fields -o data/fields --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1
"$build/cddp-data" make bytes -o data/bytes --valid 30 --bytes 20000 \
    "$source/examples" "$source/docs/man" >/dev/null || exit 1

# Images of 28 x 28 pixels in the format of MNIST: image i is bright in six rows that
# tell its label, i % 10. Writes NAME.idx, of COUNT images, and NAME.labels.
digits() { # NAME COUNT
    LC_ALL=C awk -v count="$2" -v images="$1.idx" -v labels="$1.labels" '
    function put(byte, file) { printf "%c", byte >file }
    function size(n, file) {
        put(0, file); put(0, file); put(int(n / 256), file); put(n % 256, file)
    }
    function head(dimensions, file) {
        put(0, file); put(0, file); put(8, file); put(dimensions, file)
        size(count, file)
    }
    BEGIN {
        head(3, images); size(28, images); size(28, images)
        head(1, labels)
        for (i = 0; i < count; i++) {
            put(i % 10, labels)
            for (p = 0; p < 784; p++) {
                row = int(p / 28) - 2 * (i % 10)
                put((row >= 0 && row < 6) ? 200 + i % 50 : p * i % 100, images)
            }
        }
    }'
}
digits train 24 && digits valid 8 && gzip train.idx || exit 1
"$build/cddp-data" convert idx -o data/mnist image=train.idx.gz \
    label=train.labels >/dev/null || exit 1
"$build/cddp-data" convert idx -o data/mnist --name valid image=valid.idx \
    label=valid.labels >/dev/null || exit 1

for file in "$source"/examples/[!d]*.yaml; do # data-*: examples_data.sh
    name=$(basename "$file" .yaml)
    [ "$name" != mnist-letters ] || continue # needs mnist: see below
    small=() steps=3
    case $name in
    preset-gpt2)
        small=(--set model.width=24 --set model.depth=2) steps='[0-9]+' ;;
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

# learns NAME DATA EPOCHS EXPRESSION [--set ...]: train the run file NAME on the
# data set in DATA. EXPRESSION of awk must be true for the validation loss
# (loss) and accuracy (right, %).
learns()
{
    local out
    out=$("$build/cddp-train" --fresh --set data.train="$2/train-*.h5" \
        --set data.valid="$2/valid-*.h5" --set train.epochs="$3" \
        --set train.batch=16 --set run.dir="learn-$1" --set train.threads=1 \
        "${@:5}" "$source/examples/$1.yaml" 2>&1) || failed=1
    awk '/^final:/ {
            for (i = 1; i < NF; i++) {
                if ($i == "accuracy") right = $(i + 1)
                if ($i == "loss") loss = $(i + 1)
            }
            found = '"$4"'
        }
        END { exit !found }' <<<"$out" || {
        echo "FAIL: $1 does not learn ($4): $out"
        failed=1
    }
}
"$build/cddp-data" make fields -o learn --train 320 --valid 100 >/dev/null ||
    exit 1
learns preset-cosmoflow learn 2 'loss > 0 && loss < 0.27'
learns preset-unet3d learn 2 'right > 55'
"$build/cddp-data" make ising -o learn-ising --train 1500 --valid 400 \
    --shards 1 >/dev/null || exit 1
learns ising learn-ising 3 'right > 95'
digits more-train 600 && digits more-valid 100 || exit 1
for name in train valid; do
    "$build/cddp-data" convert idx -o learn-mnist --name $name --gzip 1 --shards 2 \
        image=more-$name.idx label=more-$name.labels >/dev/null || exit 1
done
learns mnist learn-mnist 3 'right > 95'
# With the convolutions of that network, the new layers need few samples.
digits few-train 60 && digits few-valid 40 || exit 1
for name in train valid; do
    "$build/cddp-data" convert idx -o learn-few --name $name \
        image=few-$name.idx label=few-$name.labels >/dev/null || exit 1
done
learns mnist-letters learn-few 12 'right > 90' --set checkpoint.init=learn-mnist \
    --set 'data.target={path: /label}'
"$build/cddp-ckpt" diff learn-mnist learn-mnist-letters >differs 2>&1
if grep -q 'model/conv' differs || ! grep -q 'model/linear1.weight' differs; then
    echo "FAIL: mnist-letters: the convolutions changed, or nothing else did:"
    cat differs
    failed=1
fi
# The entropy of single bytes of this text is about 3.45 nats.
"$build/cddp-data" make bytes -o learn-bytes --valid 30 --bytes 150000 \
    "$source/docs" "$source/examples" "$source/src/nn" >/dev/null || exit 1
learns gpt-bytes learn-bytes 2 'loss > 0 && loss < 3.2' \
    --set train.batch=8 --set model.width=64 --set model.depth=2
# Each of several losses has its own mean over all ranks: any number of ranks
# prints equal values.
rows='"(loss|phase_loss|energy_loss|energy_mae)": [0-9.]+'
for ranks in 1 2; do
    "$build/cddp-train" --local $ranks --set train.epochs=2 \
        --set train.batch=7 --set run.dir=two-$ranks \
        "$source/examples/ising-two.yaml" >/dev/null 2>&1
    grep -oE "$rows" two-$ranks/metrics.jsonl >two-$ranks.txt
done
if ! paste two-1.txt two-2.txt | awk '{ d = $2 - $4; if (d < 0) d = -d
    if ($1 != $3 || d > 1e-5 * $2) { print; bad = 1 } }
    END { exit bad || NR != 32 }'; then
    echo "FAIL: ising-two: the losses of 1 and 2 ranks differ"
    failed=1
fi
exit $failed
