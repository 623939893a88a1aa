#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Stands for the tests of CUDA's emulation where configure found no toolkit.
echo "CUDA's headers are missing (see configure's summary): kernels were not emulated" >&2
exit 77
