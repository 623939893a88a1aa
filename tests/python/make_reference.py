#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch computes, for tests/nn/test_parity.c.

    pip install torch h5py        (in an environment outside of this tree)
    tests/python/make_reference.py tests/data

writes reference.h5 (initial weights by cddp's parameter names, inputs and
targets in the order of use) and reference.json (the run files' sections, the
loss of each of 20 steps, and the loss of an evaluation after them, which shows
the running statistics of batch norm). Both are committed: the test itself needs
neither Python nor PyTorch.

PyTorch computes in float64 from float32 weights, so that the recorded numbers
carry no rounding of its own; that its float32 agrees to 2e-5 is checked here.
"""
import json
import pathlib
import sys

import h5py
import numpy
import torch
from torch import nn

STEPS, BATCH, SIDE, CLASSES = 20, 32, 12, 4

# No bias ahead of a batch norm: its gradient is zero but for rounding, which
# AdamW would blow up to steps of full size and random sign.
MODELS = {
    "mlp": """
- flatten
- linear: {out: 32}
- relu
- linear: {out: 4}
""",
    "cnn": """
- conv: {out: 6, kernel: 3, pad: 1}
- relu
- maxpool: {kernel: 2}
- conv: {out: 8, kernel: [3, 2], stride: [1, 2]}
- relu
- flatten
- linear: {out: 4}
""",
    "batchnorm": """
- conv: {out: 6, kernel: 3, pad: 1, bias: false}
- batchnorm
- relu
- maxpool: {kernel: 2}
- flatten
- linear: {out: 16, bias: false}
- batchnorm
- relu
- linear: {out: 4}
""",
}


def build(name):
    """The model and cddp's names of its modules."""
    half = SIDE // 2
    if name == "mlp":
        model = nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, 32), nn.ReLU(),
            nn.Linear(32, CLASSES))
        return model, {1: "linear1", 3: "linear2"}
    if name == "cnn":
        model = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 8, (3, 2), stride=(1, 2)), nn.ReLU(), nn.Flatten(),
            nn.Linear(8 * (half - 2) * (half // 2), CLASSES))
        return model, {0: "conv1", 3: "conv2", 6: "linear1"}
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(6 * half * half, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, CLASSES))
    return model, {0: "conv1", 1: "batchnorm1", 5: "linear1", 6: "batchnorm2",
                   8: "linear2"}


OPTIMIZERS = {
    "sgd": ("{sgd: {lr: 0.05, momentum: 0.9, weight_decay: 0.001}}",
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9,
                                      weight_decay=0.001)),
    "nesterov": ("{sgd: {lr: 0.05, momentum: 0.9, nesterov: true}}",
                 lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9,
                                           nesterov=True)),
    "adamw": ("{adamw: {lr: 0.01, weight_decay: 0.1}}",
              lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)),
}

LOSSES = {"cross_entropy": nn.functional.cross_entropy,
          "mse": nn.functional.mse_loss}

CASES = [("mlp", "cross_entropy", "sgd"), ("mlp", "cross_entropy", "adamw"),
         ("mlp", "mse", "nesterov"), ("cnn", "cross_entropy", "sgd"),
         ("cnn", "cross_entropy", "adamw"), ("cnn", "mse", "sgd"),
         ("batchnorm", "cross_entropy", "sgd"),
         ("batchnorm", "cross_entropy", "adamw")]


def make_data():
    """Small integers; the class is the quadrant with the largest sum."""
    random = numpy.random.default_rng(1)
    x = random.integers(-2, 3, (STEPS * BATCH, 1, SIDE, SIDE), numpy.int8)
    half = SIDE // 2
    quadrants = x.reshape(-1, 2, half, 2, half).sum((2, 4)).reshape(-1, 4)
    values = (quadrants / 8).astype(numpy.float32)
    return x, quadrants.argmax(1).astype(numpy.int8), values


def train(model, make_optimizer, loss_of, x, target):
    """Losses of all steps, then that of the first batch in evaluation mode."""
    optimizer = make_optimizer(model.parameters())
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        loss = loss_of(model(x[rows]), target[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        last = loss_of(model(x[:BATCH]), target[:BATCH]).item()
    return losses + [last]


def run_case(state, case, data, dtype):
    name, loss, optimizer = case
    model, _ = build(name)
    model.load_state_dict(state)
    model.to(dtype)
    x, labels, values = data
    target = torch.tensor(labels.astype(numpy.int64)) \
        if loss == "cross_entropy" else torch.tensor(values).to(dtype)
    return train(model, OPTIMIZERS[optimizer][1],
                 LOSSES[loss], torch.tensor(x).to(dtype),
                 target)


def main():
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(1)
    data = make_data()
    states, cases = {}, []
    with h5py.File(out / "reference.h5", "w") as file:
        for key, value in zip(("input", "labels", "values"), data):
            file.create_dataset(key, data=value)
        for name in MODELS:
            model, names = build(name)
            states[name] = model.state_dict()
            for index, layer in names.items():
                for key, value in model[index].named_parameters():
                    file[f"{name}/{layer}.{key}"] = value.detach().numpy()
    for case in CASES:
        name, loss, optimizer = case
        losses = run_case(states[name], case, data, torch.float64)
        single = run_case(states[name], case, data, torch.float32)
        worst = max(abs(a - b) / abs(a) for a, b in zip(losses, single))
        print("-".join(case), losses[0], losses[-1], "float32 off by", worst)
        assert worst < 2e-5
        layers = MODELS[name].strip().replace("\n", "\n    ")
        cases.append({
            "name": "-".join(case), "weights": name,
            "run": f"model:\n  input: [1, {SIDE}, {SIDE}]\n  layers:\n"
                   f"    {layers}\nloss: {loss}\n"
                   f"optimizer: {OPTIMIZERS[optimizer][0]}\n",
            "losses": losses[:-1], "eval_loss": losses[-1]})
    with open(out / "reference.json", "w", encoding="ascii") as file:
        json.dump({"torch": torch.__version__.split("+")[0], "batch": BATCH,
                   "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
