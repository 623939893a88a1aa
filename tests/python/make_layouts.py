# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""
Writes names, types and shapes of the state_dict() of models of transformers and
torchvision to tests/data/layout_NAME.txt, for tests/cmd/test_ckpt_maps.

usage: make_layouts.py tests/data
"""

import sys

import torch
import torchvision
import transformers


def write(name, what, model):
    with open(f"{sys.argv[1]}/layout_{name}.txt", "w") as file:
        file.write(f"# state_dict() of {what}, torch {torch.__version__}\n")
        for key, value in model.state_dict().items():
            words = [key, str(value.dtype).replace("torch.", ""), *map(str, value.shape)]
            file.write(" ".join(words) + "\n")


write(
    "gpt2",
    f"transformers {transformers.__version__} GPT2LMHeadModel(GPT2Config())",
    transformers.GPT2LMHeadModel(transformers.GPT2Config()),
)
for which in "resnet18", "resnet34", "resnet50", "vit_b_16":
    write(
        which,
        f"torchvision {torchvision.__version__} models.{which}()",
        getattr(torchvision.models, which)(),
    )
