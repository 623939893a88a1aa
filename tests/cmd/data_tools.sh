#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-data shard and split, on files that h5py wrote: every value, type and
# attribute arrives; what does not fit together is refused before anything is
# written.
set -u
# shellcheck source=SCRIPTDIR/datalib.sh
. "$(dirname "$0")/datalib.sh"
needs h5py numpy

/usr/bin/python3 - <<'END' || exit 1
import h5py
import numpy as np

rows = 0
for index, count in enumerate((130, 1, 300)):
    with h5py.File("in-%d.h5" % index, "w") as file:
        n = np.arange(rows, rows + count)
        rows += count
        file.attrs["bound_accuracy"] = 0.75
        file.attrs["bound_name"] = "a text"
        file.attrs["list"] = np.arange(6, dtype=">i2").reshape(2, 3)
        label = file.create_dataset("label", data=(n * 7 % 10 % 4).astype("u1"),
                                    chunks=(50,) if count > 50 else None)
        label.attrs["classes"] = [b"north", b"south", b"east", b"west"]
        label.attrs["words"] = ["a", "longer", "\u00e4"]
        label.attrs["none"] = h5py.Empty("f")
        label.attrs["itself"] = label.ref
        file["data/deep/image"] = (n[:, None, None] * np.ones((1, 3, 2))).astype(">f4")
        file["data"].attrs["unit"] = "mm"
        file["data/half"] = (n / 8).astype("f2")
        file["flag"] = n % 3 == 0
        file["pair"] = np.array([(i, i / 2) for i in n], dtype=[("i", "<i8"), ("x", ">f8")])
        file["name"] = np.array(["s%d" % i for i in n], dtype="S6")
        kind = h5py.enum_dtype({"RED": 1, "BLUE": 5}, basetype="i2")
        file.create_dataset("colour", data=1 + 4 * (n % 2), dtype=kind)
END

cat >compare.py <<'END'
"""compare.py GIVEN... -- FOUND...: the same samples, in their order, types and attributes."""
import sys

import h5py
import numpy as np

cut = sys.argv.index("--")
given, found = ([h5py.File(path, "r") for path in part]
                for part in (sys.argv[1:cut], sys.argv[cut + 1:]))


def sets(file):
    names = []
    file.visititems(lambda name, item: names.append(name)
                    if isinstance(item, h5py.Dataset) else None)
    return names


def attributes(item):
    return {name: (np.asarray(value).dtype if not isinstance(value, h5py.Empty) else value.dtype,
                   np.asarray(value).tolist() if not isinstance(value, h5py.Empty) else None)
            for name, value in item.attrs.items() if name != "itself"}


assert sets(given[0])
for file in found:
    assert sets(file) == sets(given[0]), sets(file)
    for name in sets(file):
        assert file[name].id.get_type() == given[0][name].id.get_type(), name
        for item in (name, "data", "/"):
            assert attributes(file[item]) == attributes(given[0][item]), item
        assert "itself" not in file[name].attrs
for name in sets(given[0]):
    a, b = (np.concatenate([file[name][()] for file in part]) for part in (given, found))
    assert a.tobytes() == b.tobytes(), name
END

same() {
    /usr/bin/python3 compare.py in-*.h5 -- "$@" || {
        echo "FAIL: $* have other samples"
        failed=1
    }
}

expect 0 '431 samples of train in 1 shard' shard -o one in-*.h5
expect 0 '/data/deep/image  *float32  *\[3, 2\]' shard -o one --force in-*.h5
same one/train-00.h5
expect 0 'of valid in 4 shards' shard -o four --name valid --shards 4 --gzip 3 --chunk 1 in-*.h5
same four/valid-*.h5
expect 0 '/data/deep/image .*chunked, filtered' info four/valid-00.h5
# A row of the first chunks and nothing else: the size of a chunk is that of its samples.
expect 0 '1 shard' shard -o again --chunk 1024 four/valid-*.h5
same again/train-*.h5
expect 0 '/label  *uint8  *\[\]' shard -o part --only /label,flag in-*.h5
grep -q image out && { echo "FAIL: --only copies others"; failed=1; }
mkdir copies && cp in-*.h5 copies
expect 0 '1 shard' shard -o copies/new --force copies/*.h5
cmp -s one/train-00.h5 copies/new/train-00.h5 || { echo "FAIL: other bytes"; failed=1; }

# What does not fit together. Nothing is written.
/usr/bin/python3 - <<'END'
import h5py
import numpy as np

def write(name, **sets):
    with h5py.File(name, "w") as file:
        for key, value in sets.items():
            file[key] = value

write("a.h5", x=np.zeros((4, 2)), y=np.zeros(4, "i4"))
write("type.h5", x=np.zeros((4, 2), "f4"), y=np.zeros(4, "i4"))
write("shape.h5", x=np.zeros((4, 3)), y=np.zeros(4, "i4"))
write("fewer.h5", x=np.zeros((4, 2)))
write("more.h5", x=np.zeros((4, 2)), y=np.zeros(4, "i4"), z=np.zeros(4))
write("rows.h5", x=np.zeros((4, 2)), y=np.zeros(5, "i4"))
write("single.h5", x=np.zeros((4, 2)), y=3)
write("texts.h5", x=np.zeros((4, 2)), y=["a", "b", "c", "d"])
write("empty.h5", x=np.zeros((0, 2)))
write("half.h5", z=np.array([0.5, 1]))
write("minus.h5", x=np.zeros((4, 2)), y=np.array([0, 1, -2, 0]))
END
expect 65 'type.h5: the samples of /x .* in a.h5' shard -o no a.h5 type.h5
expect 65 'shape.h5: the samples of /x .* in a.h5' shard -o no a.h5 shape.h5
expect 65 'fewer.h5: it has 1 datasets, a.h5 has 2' shard -o no a.h5 fewer.h5
expect 65 'more.h5: dataset /z is not in a.h5' shard -o no a.h5 more.h5
expect 65 'rows.h5: dataset /y has 5 samples, but /x has 4: .*--only' shard -o no rows.h5
expect 65 'single.h5: dataset /y has 0 dimensions.*--only' shard -o no single.h5
expect 65 'texts.h5: dataset /y .*variable length.*--only' shard -o no texts.h5
expect 65 'empty.h5: there are no samples' shard -o no empty.h5
expect 64 '"/x,/z" has 2 names, but only 1 of them is in a.h5' shard -o no --only /x,/z a.h5
expect 65 'none.h5' shard -o no none.h5
expect 64 'name at least one file' shard -o no
expect 64 'o DIR is missing' shard a.h5

# HDF5 would give fill values, or what the memory held before, without a word.
/usr/bin/python3 - <<'END' || failed=1
import h5py

with h5py.File("source.h5", "w") as file:
    file["x"] = range(20)
with h5py.File("virtual.h5", "w") as file:
    layout = h5py.VirtualLayout((30,), "<i8")
    layout[:20] = h5py.VirtualSource("source.h5", "x", (20,))
    layout[20:] = h5py.VirtualSource("missing.h5", "x", (10,))
    file.create_virtual_dataset("x", layout)
with h5py.File("part.h5", "w") as file:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    made = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I64LE,
                           h5py.h5s.create_simple((30,)), plist)
    h5py.Dataset(made)[:10] = range(10)
END
for file in virtual part; do
    for tool in 'shard -o no' 'split -o no' stats; do
        # shellcheck disable=SC2086 # a list of words
        expect 65 "$file.h5: .*/x" $tool $file.h5
    done
done
expect 64 'choose another directory' shard -o one --force ./one/../one/train-00.h5
[ ! -e no ] || { echo "FAIL: refused, but something was written"; ls -R no; failed=1; }
[ -e one/train-00.h5 ] || { echo "FAIL: what is read was removed"; failed=1; }

# Parts: the samples of both together are all, in their order; each seed has its own.
cat >parts.py <<'END'
"""parts.py DIR VALID: checks the parts, and prints a hash of the choice."""
import glob
import hashlib
import sys

import h5py
import numpy as np

def numbers(name):
    return np.concatenate([h5py.File(path, "r")["pair"]["i"]
                           for path in sorted(glob.glob(sys.argv[1] + "/" + name + "-*.h5"))])

train, valid = numbers("train"), numbers("valid")
assert len(valid) == int(sys.argv[2]), len(valid)
assert (np.diff(train) > 0).all() and (np.diff(valid) > 0).all()
assert sorted([*train, *valid]) == list(range(431))
# Not the beginning, the end or every n-th.
assert len(set(np.diff(valid))) > 3
print(hashlib.sha256(valid.tobytes()).hexdigest())
END
parts() {
    /usr/bin/python3 parts.py "$@" || { echo "FAIL: $1"; exit 1; }
}
expect 0 '388 samples of train in 1 shard' split -o split in-*.h5
expect 0 '86 samples of valid in 1 shard' split -o seed2 --valid 20 --seed 2 --shards 3 in-*.h5
expect 0 '388 samples of train in 4 shards' split -o same --shards 4 --gzip 1 in-*.h5
expect 0 '43 samples of valid' split -o other --seed 7 in-*.h5
first=$(parts split 43)
second=$(parts same 43)
[ "$first" = "$second" ] || { echo "FAIL: one seed, two choices"; failed=1; }
[ "$first" != "$(parts other 43)" ] || { echo "FAIL: two seeds, one choice"; failed=1; }
parts seed2 86 >/dev/null
[ "$(ls seed2 | tr '\n' ' ')" = 'train-00.h5 train-01.h5 train-02.h5 valid-00.h5 ' ] || failed=1
expect 0 'samples of valid' split -o classes --valid 25 --by-class /label in-*.h5
/usr/bin/python3 - <<'END' || failed=1
import h5py
import numpy as np

both = [np.bincount(h5py.File("classes/%s-00.h5" % name, "r")["label"][()])
        for name in ("train", "valid")]
print("classes:", *both)
assert (np.abs(both[1] - 0.25 * (both[0] + both[1])) <= 0.5).all()
assert len(h5py.File("classes/valid-00.h5", "r")["label"].attrs["classes"]) == 4
assert h5py.File("classes/valid-00.h5", "r").attrs["bound_accuracy"] == 0.75
END
expect 64 'nothing would be left for validation' split -o no --valid 0.1 in-*.h5
expect 64 '--valid: expected' split -o no --valid 100 in-*.h5
expect 64 '--seed: expected' split -o no --seed x in-*.h5
expect 64 'by-class: there is no dataset /no' split -o no --by-class /no in-*.h5
expect 65 'is no label' split -o no --by-class /x a.h5
expect 65 'sample 0 .* no whole number in /z' split -o no --by-class z half.h5
expect 65 'sample 2 .* has -2 in /y' split -o no --by-class y minus.h5
expect 64 'choose another directory' split -o split --force split/train-00.h5

# ---- attributes of more than 64 KiB, such as the names of many classes ------

/usr/bin/python3 - <<'END' || exit 1
import h5py
import numpy as np

with h5py.File("large.h5", "w", libver=("v108", "v110")) as file:
    file["x"] = np.zeros((10, 4), "f4")
    file["x"].attrs["classes"] = np.array([b"%020d" % i for i in range(9000)])
    file.attrs["numbers"] = np.arange(20000)
END
expect 0 '10 samples of train' shard -o large large.h5
/usr/bin/python3 - <<'END' || failed=1
import h5py
import numpy as np

with h5py.File("large/train-00.h5", "r") as file:
    classes = file["x"].attrs["classes"]
    assert [int(name) for name in classes] == list(range(9000))
    assert (file.attrs["numbers"] == np.arange(20000)).all()
END
[ ! -e no ] || { echo "FAIL: refused, but something was written"; ls -R no; failed=1; }
exit $failed
