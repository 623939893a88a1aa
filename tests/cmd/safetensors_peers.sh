#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# Models of transformers and torchvision here and back. Skipped unless
# CDDP_PEERS_VENV is a virtual environment with these packages; they are large:
#   python3 -m venv VENV
#   VENV/bin/pip install torch torchvision transformers safetensors h5py
set -u
build=$PWD
source=$(cd "${srcdir:-.}" && pwd)
python=${CDDP_PEERS_VENV:-}/bin/python
if [ -z "${CDDP_PEERS_VENV:-}" ] || [ ! -x "$python" ]; then
    echo "SKIP: CDDP_PEERS_VENV names no virtual environment with torch, torchvision, transformers, safetensors and h5py"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
"$python" "$source/tests/python/safetensors_peers.py" "$build" \
    "$source/share/maps"
