#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Writes the files of tests/import/test_npz.c.

usage: make_npz.py DIR (tests/data/npz)
"""
import sys

import numpy as np

folder = sys.argv[1]
x = np.arange(-60, 60).reshape(20, 2, 3).astype("<i2")
label = np.arange(20, dtype="uint8") % 7
np.savez(folder + "/plain.npz", x=x, label=label)
np.savez_compressed(folder + "/packed.npz", x=x.astype(">i2"), label=label)
# As Keras has it: parts with different numbers of samples.
np.savez(folder + "/parts.npz", x_train=x[:15], x_test=x[15:])
np.savez(folder + "/texts.npz", names=np.array(["a", "b"]))
