#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-data stats against NumPy, and what cddp-data info says of the storage.
set -u
# shellcheck source=SCRIPTDIR/datalib.sh
. "$(dirname "$0")/datalib.sh"
needs h5py numpy yaml

/usr/bin/python3 - <<'END' || exit 1
import h5py
import numpy as np

random = np.random.default_rng(5)
for index, count in enumerate((700, 1300)):
    with h5py.File("s-%d.h5" % index, "w") as file:
        # Long samples, and numbers far from 0 beside their deviation.
        file["image"] = random.integers(0, 256, (count, 3, 40, 50)).astype("u1")
        file["far"] = 1e8 + random.normal(0, 1, (count, 2, 3, 3))
        table = random.normal(3, 2, (count, 5)).astype("f4")
        table[3, 1] = np.nan
        table[4:6, 1] = np.inf
        table[:, 4] = np.nan
        file["table"] = table
        file["half"] = random.normal(0, 1, count).astype("f2")
        file["big"] = random.integers(-9, 9, (count, 4, 4)).astype(">i8")
        file["label"] = (random.integers(0, 40, count) // 3).astype("i4")
        file["signed"] = random.integers(-1, 3, count).astype("i1")
        file["name"] = np.array(["x"] * count, dtype="S3")
with h5py.File("layout.h5", "w") as file:
    numbers = np.arange(4096.0).reshape(64, 64)
    file["plain"] = numbers
    file.create_dataset("packed", data=numbers, chunks=(8, 64), shuffle=True,
                        compression="gzip", compression_opts=7, fletcher32=True)
    file.create_dataset("lzf", data=numbers, chunks=(16, 64), compression="lzf")
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_chunk((16, 64))
    create.set_shuffle()
    create.set_shuffle()
    twice = h5py.h5d.create(file.id, b"twice", h5py.h5t.IEEE_F64LE,
                            h5py.h5s.create_simple((64, 64)), create)
    twice.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers)
    file.create_dataset("never", (64, 64), "f4")
    file["texts"] = ["a", "b"]
with h5py.File("texts.h5", "w") as file:
    file["texts"] = ["a", "b"]
END

expect 0 '^2,000 samples' stats --yaml stats.yaml s-*.h5
grep -q 'classes 0 to 13, of' out || { echo "FAIL: no classes"; cat out; failed=1; }
grep -q ' 2 nan  4 inf$' out || { echo "FAIL: nan and inf"; cat out; failed=1; }
/usr/bin/python3 - <<'END' || failed=1
import glob

import h5py
import numpy as np
import yaml

with open("stats.yaml") as file:
    found = yaml.safe_load(file)
assert found.pop("samples") == 2000
files = [h5py.File(path) for path in sorted(glob.glob("s-*.h5"))]
assert set(found) == {"/" + name for name in files[0]}, set(found)
for name, of in found.items():
    all_of = np.concatenate([file[name][()] for file in files])
    assert of["shape"] == list(all_of.shape[1:]), name
    if name == "/name":
        assert "mean" not in of
        continue
    channels = {"/image": 3, "/far": 2, "/table": 5}.get(name, 1)
    x = all_of.astype("f8")
    x = (x.reshape(2000, channels, -1) if channels > 1 else x.reshape(2000, 1, -1))
    x = x.transpose(1, 0, 2).reshape(channels, -1)
    for c in range(channels):
        good = x[c][np.isfinite(x[c])]
        assert of["nan"][c] == np.isnan(x[c]).sum(), name
        assert of["inf"][c] == np.isinf(x[c]).sum(), name
        if not len(good):
            assert all(np.isnan(of[key][c]) for key in ("mean", "std", "min", "max"))
            continue
        assert of["min"][c] == good.min() and of["max"][c] == good.max(), name
        np.testing.assert_allclose(of["mean"][c], good.mean(), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(of["std"][c], good.std(), rtol=1e-9)
    if name == "/label":
        assert of["classes"] == np.bincount(all_of).tolist()
    else:
        assert "classes" not in of, name
END
expect 0 '^/half  *float16' stats --only half s-0.h5
grep -q image out && { echo "FAIL: --only shows others"; failed=1; }
expect 0 '^2,000 samples' stats --layout nhwc --only big --yaml last.yaml s-*.h5
/usr/bin/python3 - <<'END' || failed=1
import glob

import h5py
import numpy as np
import yaml

with open("last.yaml") as file:
    found = yaml.safe_load(file)["/big"]
x = np.concatenate([h5py.File(path)["big"][()] for path in sorted(glob.glob("s-*.h5"))])
x = x.astype("f8").reshape(-1, 4)
np.testing.assert_allclose(found["mean"], x.mean(0), rtol=1e-9)
np.testing.assert_allclose(found["std"], x.std(0), rtol=1e-9)
END
expect 64 'nchw or nhwc' stats --layout first s-0.h5
expect 64 'name at least one file' stats
expect 65 'none.h5' stats none.h5
expect 74 'no/dir.yaml' stats --yaml no/dir.yaml s-0.h5

# A type that is larger than all that are converted at once.
/usr/bin/python3 - <<'END' || failed=1
import h5py

kind = h5py.h5t.STD_I32LE.copy()
kind.set_size(600000)
with h5py.File("giant.h5", "w") as file:
    h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,)))
    file["y"] = [1, 2]
END
expect 0 '^/y ' stats giant.h5

# Texts have other sizes in files than in memory.
expect 0 '^ok   texts.h5: 1 datasets' verify texts.h5
expect 0 '^layout.h5: ' info layout.h5
lines() { # NAME PATTERN...: of the dataset, in the lines that belong to it
    local part
    part=$(awk -v name="  $1 " 'index($0, "  /") == 1 {on = index($0, name) == 1} on' out)
    for pattern in "${@:2}"; do
        grep -q -e "$pattern" <<<"$part" || {
            echo "FAIL: info says of $1: $part, without '$pattern'"
            failed=1
        }
    done
}
lines /plain 'read by pread at byte [0-9]* (multiple of [0-9.]* [KM]*i*B)'
lines /packed '8 chunks of \[8, 64\], 4.0 KiB each, ' 'shuffle + gzip 7' fletcher32 \
    '32.0 KiB, [0-9.]* KiB stored; read chunk by chunk, decoded outside of HDF5$'
lines /lzf '4 chunks of \[16, 64\], 8.0 KiB each, lzf (32000)' \
    'read chunk by chunk, decoded outside of HDF5$'
lines /twice 'read by H5Dread, as only HDF5 undoes its filters$'
lines /never '16.0 KiB, 0 B stored; read by H5Dread, as some of it was never written$'
lines /texts 'cddp-train cannot read it: '
grep -q '^  in all: 32.0 KiB by pread, ' out || { echo "FAIL: no sum"; cat out; failed=1; }
exit $failed
