#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# The recipes for Spack and EasyBuild (docs/admin) say nothing that configure does
# not know; by packages.py. Neither tool is needed.
source=${srcdir:-.}
if ! command -v python3 >/dev/null; then
    echo "SKIP: python3 is missing"
    exit 77
fi
exec python3 "$source/tests/site/packages.py" "$source"
