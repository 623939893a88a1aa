#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Does docs/FROM-PYTORCH.md name all that the installed PyTorch has?

    pip install torch        (in an environment outside of this tree)
    tests/python/check_from_pytorch.py docs/FROM-PYTORCH.md

asks PyTorch for the arguments of its data-parallel classes, its comm hooks, the
options of torchrun and the environment variables that its Python code reads,
prints those that the document lacks, and ends with 1 if there are any.
"""
import importlib
import inspect
import pathlib
import re
import sys

import torch
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging import averagers
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.run import get_args_parser
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
HOOK_FILES = ("default_hooks", "powerSGD_hook", "quantization_hooks",
              "post_localSGD_hook", "debugging_hooks", "ddp_zero_hook",
              "mixed_precision_hooks", "optimizer_overlap_hooks")
# Not meant for users.
INSIDE = {"self", "args", "kwargs", "_ranks", "device", "dtype", "--help",
          "will_sync_module_buffers", "finalize_backward"}
READS = r"(?:environ(?:\.get)?[\[(]|getenv\()\s*['\"]([A-Z_0-9]+)"


def arguments(function):
    return list(inspect.signature(function).parameters)


def methods(kind):
    return [name for name, value in vars(kind).items()
            if callable(value) and not name.startswith("_")]


def hooks():
    for name in HOOK_FILES:
        module = importlib.import_module(f"{HOOKS}.{name}")
        for key, value in vars(module).items():
            if key.startswith("_") or \
                    getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value):
                yield key
            elif inspect.isclass(value) and key.endswith("SGDState"):
                yield from arguments(value.__init__)


def variables():
    root = pathlib.Path(torch.__file__).parent
    for folder in ("distributed", "distributed/elastic", "nn/parallel"):
        deep = folder.endswith("elastic")
        for path in (root / folder).glob("**/*.py" if deep else "*.py"):
            yield from re.findall(READS, path.read_text())
    agent = root / "distributed/elastic/agent/server/local_elastic_agent.py"
    yield from re.findall(
        r'"((?:TORCHELASTIC|MASTER|GROUP|ROLE|LOCAL|RANK|WORLD)[A-Z_]*)"',
        agent.read_text())


def wanted():
    ddp = DistributedDataParallel
    yield "DistributedDataParallel", arguments(ddp.__init__) + methods(ddp)
    yield "DataParallel", arguments(DataParallel.__init__)
    yield "comm hooks", hooks()
    yield "averager", arguments(averagers.PeriodicModelAverager.__init__)
    yield "Join", arguments(Join.__init__)
    yield "ZeroRedundancyOptimizer", (
        arguments(ZeroRedundancyOptimizer.__init__)
        + [m for m in methods(ZeroRedundancyOptimizer) if "_" in m])
    yield "SyncBatchNorm", arguments(nn.SyncBatchNorm.__init__)
    yield "DistributedSampler", arguments(DistributedSampler.__init__)
    yield "DataLoader", arguments(DataLoader.__init__)
    yield "init_process_group", arguments(
        torch.distributed.init_process_group)
    yield "torchrun", [max(action.option_strings, key=len)
                       for action in get_args_parser()._actions
                       if action.option_strings]
    yield "environment", variables()


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    lacks = 0
    for title, names in wanted():
        for name in sorted(set(names) - INSIDE):
            if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
                print(f"{sys.argv[1]} lacks {name} ({title})")
                lacks += 1
    print(f"torch {torch.__version__}: {lacks} names are missing")
    return lacks > 0


sys.exit(main())
