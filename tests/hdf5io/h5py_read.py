# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""h5py_read.py HOME CHECKPOINT: compare /NAME of checkpoint.h5 with the raw
floats HOME/NUMBER.f32; HOME/list has a line "NAME DIM DIM ..." for each."""
import sys

import h5py
import numpy as np


def compare(file, number, line, home):
    name, *dims = line.split()
    shape = tuple(map(int, dims)) or (1,)
    want = np.fromfile(f"{home}/{number}.f32", dtype="<u4").reshape(shape)
    have = file["/" + name]
    if have.shape != shape or have.dtype != np.dtype("<f4"):
        return f"{name}: {have.shape} {have.dtype}, expected {shape} float32"
    if not np.array_equal(have[...].view("<u4"), want):
        return f"{name}: other bits"
    if have.shape[0] > 1 and not np.array_equal(
            have[1:, ...].view("<u4"), want[1:]):
        return f"{name}: other bits in a slice"
    return None


def main():
    home, checkpoint = sys.argv[1:]
    with open(f"{home}/list") as lines, \
            h5py.File(f"{checkpoint}/checkpoint.h5", "r") as file:
        faults = [compare(file, i, line, home) for i, line in enumerate(lines)]
        if file.attrs["step"] != 42:
            faults.append("the attribute step is not 42")
    faults = [fault for fault in faults if fault]
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


sys.exit(main())
