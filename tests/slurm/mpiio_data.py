#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""mpiio_data.py DIR: shards of all layouts for mpiio.t, 109 samples."""
import sys

import h5py
import numpy

# name, rows, options of the inputs; "late" writes no row or only the first ones
SHARDS = [
    ("big-endian", 1, {"dtype": ">f8"}),
    ("chunked", 20, {"chunks": (3, 2, 4)}),
    ("contiguous", 40, {"dtype": "f4"}),
    ("empty", 0, {}),
    ("gzip", 30, {"chunks": (4, 3, 4), "compression": "gzip"}),
    ("half", 9, {"dtype": "f2", "chunks": (4, 3, 4)}),
    ("late-chunks", 5, {"chunks": (2, 3, 4), "dtype": "f8"}),
    ("late-contiguous", 4, {"dtype": "f8", "fillvalue": 2.5}),
]

first = 0
for name, rows, options in SHARDS:
    number = numpy.arange(first * 12, (first + rows) * 12)
    spins = (number * 7 % 251 / 3.0).reshape(rows, 3, 4)
    phase = numpy.arange(first, first + rows) % 3
    with h5py.File(f"{sys.argv[1]}/{name}.h5", "w") as file:
        if name.startswith("late"):
            data = file.create_dataset("spins", (rows, 3, 4), **options)
            if "chunks" in options:
                data[:2] = spins[:2]
        else:
            file.create_dataset("spins", data=spins, **options)
        file["phase"] = phase.astype("i2")
    first += rows
