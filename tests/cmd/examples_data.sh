#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The run files examples/data-*.yaml from files of their kind to a trained model: the
# commands in their first lines, on small data, from which something can be learnt.
set -u
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PATH="$build:$PATH" OMP_WAIT_POLICY=passive
failed=0

if ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    echo "SKIP: python3-numpy is missing: the data cannot be made"
    exit 77
fi
/usr/bin/python3 - <<'END' || exit 1
import os
import struct
import zlib

import numpy as np

random = np.random.default_rng(3)


def png(path, pixels):
    """Write [height, width, 3] as PNG."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
                           (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data
                       + struct.pack(">I", zlib.crc32(kind + data)))


for c, name in enumerate(("blue", "green", "red")):
    os.makedirs("photos/" + name)
    for i in range(40):
        size = random.integers(20, 40, 2)
        pixels = random.integers(0, 120, (*size, 3)).astype("u1")
        pixels[:, :, 2 - c] += 100
        png("photos/%s/%d.png" % (name, i), pixels)

os.mkdir("cifar-10-batches-bin")
for name, count in (("data_batch_1", 150), ("data_batch_2", 150), ("test_batch", 60)):
    label = random.integers(0, 10, count)
    image = random.integers(0, 60, (count, 3, 32, 32))
    image[np.arange(count), label % 3, 3 * label + 1] += 190
    np.concatenate([label[:, None], image.reshape(count, -1)], 1).astype("u1").tofile(
        "cifar-10-batches-bin/%s.bin" % name)

y = random.uniform(-1, 1, (400, 2)).astype("f4")
x = random.normal(0, 0.1, (400, 1, 16, 16)).astype("f4")
x[:, 0, :8] += y[:, 0, None, None]
x[:, 0, 8:] += y[:, 1, None, None]
np.savez("all.npz", x=x, y=y)

for name, count in (("train/1", 400), ("train/2", 300), ("valid/1", 60)):
    os.makedirs("books/" + name[:-2], exist_ok=True)
    with open("books/%s.txt" % name, "w") as file:
        for line in range(count):
            print("the %s sees a %s" % (random.choice(["cat", "dog", "bird"]),
                                        random.choice(["tree", "house", "star"])), file=file)

with open("stars.csv", "w") as file:
    print("colour,size,name,giant", file=file)
    for star in range(400):
        colour, size = random.normal(0, 1, 2)
        print("%g,%g,star %d,%d" % (colour, size, star, size > 0.5), file=file)
END

# learns NAME EXPRESSION [--set ...]: do what the first lines of the run file say, and
# train. EXPRESSION of awk must be true for the validation loss (loss) and accuracy (right, %).
learns() {
    local file=$source/examples/data-$1.yaml out status=0
    sed -n 's/^#   cddp-data/cddp-data/p; s/^#       / /p' "$file" |
        sed -e ':a' -e '/\\$/N; s/\\\n//; ta' >commands
    bash -eu commands >log 2>&1 || status=$?
    if grep -q 'this build cannot read' log; then
        echo "left out: $(cat log)"
        return
    fi
    [ $status = 0 ] || { echo "FAIL: data-$1: $(cat log)"; failed=1; return; }
    out=$(cddp-train --set run.dir="run-$1" --set train.threads=1 "${@:3}" "$file" 2>&1) ||
        failed=1
    awk '/^final:/ {
            for (i = 1; i < NF; i++) {
                if ($i == "accuracy") right = $(i + 1)
                if ($i == "loss") loss = $(i + 1) + 0
            }
            found = '"$2"'
        }
        END { exit !found }' <<<"$out" || {
        echo "FAIL: data-$1 does not learn ($2): $out"
        failed=1
    }
}
learns images 'right > 90' --set model.width=4 --set train.batch=12 --set train.epochs=6
# The lines of these images tell their classes, so they must not move.
learns cifar10 'right > 90' --set train.batch=20 --set train.epochs=6 \
    --set data.input.pad=0 --set data.input.flip=none
learns arrays 'loss < 0.05' --set train.batch=12 --set train.epochs=4
learns text 'loss < 0.6' --set train.batch=8 --set optimizer.adamw.lr=1.0e-2
learns table 'right > 90' --set train.batch=12
exit $failed
