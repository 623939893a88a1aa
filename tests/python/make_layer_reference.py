#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch computes for single layers, for test_layer_parity.c.

    pip install torch        (in an environment outside of this tree)
    tests/python/make_layer_reference.py tests/data

writes layers.json: for each case the model of the run file, weights, input and
target; and PyTorch's output, loss and the gradient of every parameter. It is
committed: the test itself needs neither Python nor PyTorch. PyTorch computes in
float64 from float32 numbers, so that what is recorded carries no rounding of
its own.

To add a case: a module whose attributes have the names of cddp's layers, and
the layers as in a run file. A `position` ahead of a layer without parameters
(cddp adds its weight to the input) shows the gradient of that layer's input.
"""
import json
import pathlib
import sys

import torch
from torch import nn

BATCH = 3
CASES = []


class Position(nn.Module):
    """cddp's position: a learnt tensor of the shape of a sample."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return x + self.weight


def case(name, shape, layers, tokens=0):
    """Register a module class as a case; [shape] is that of a sample."""
    def register(module):
        CASES.append((name, shape, layers, tokens, module))
        return module
    return register


@case("embedding, tied", [6], """
- {name: words, embedding: {vocabulary: 11, out: 8}}
- {name: places, position: }
- {linear: {out: 11, bias: false, flatten: false}, share: words}
""", tokens=11)
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.places = Position(6, 8)

    def forward(self, x):
        x = self.places(self.words(x))
        return nn.functional.linear(x, self.words.weight)


def turn(x, neighbours):
    """Rotary positions of x [N, heads, T, D]."""
    D, T = x.shape[-1], x.shape[-2]
    angle = torch.outer(torch.arange(T, dtype=torch.float64),
                        100.0 ** (-torch.arange(0, D, 2).double() / D))
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    if neighbours:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * c - b * s, a * s + b * c), -1)


class Attention(nn.Module):
    """4 heads that share 2 of keys and values, with rotary positions."""

    def __init__(self, neighbours):
        super().__init__()
        self.qkv = nn.Linear(5, 32)
        self.neighbours = neighbours

    def forward(self, x):
        q, k, v = self.qkv(x).split((16, 8, 8), -1)
        q, k, v = (t.unflatten(-1, (-1, 4)).transpose(1, 2)
                   for t in (q, k, v))
        q, k = turn(q, self.neighbours), turn(k, self.neighbours)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=self.neighbours)
        return y.transpose(1, 2).flatten(-2)


@case("attention, rotary", [7, 5], """
- {name: qkv, linear: {out: 32, flatten: false}}
- rotary: {heads: 4, kv_heads: 2, base: 100}
- attention: {heads: 4, kv_heads: 2}
""")
class RotaryHalves(Attention):
    def __init__(self):
        super().__init__(False)


@case("attention, rotary neighbours, causal", [7, 5], """
- {name: qkv, linear: {out: 32, flatten: false}}
- rotary: {heads: 4, kv_heads: 2, base: 100, pairs: neighbours}
- attention: {heads: 4, kv_heads: 2, causal: true}
""")
class RotaryNeighbours(Attention):
    def __init__(self):
        super().__init__(True)


def numbers(tensor):
    """Shortest texts that give the same float32, or all digits that count."""
    if not tensor.dtype.is_floating_point:
        return tensor.flatten().tolist()
    return [float(f"{v:.9g}") for v in tensor.detach().flatten().tolist()]


def run(name, shape, layers, tokens, make):
    module = make()
    x = torch.randint(tokens, (BATCH, *shape)) if tokens \
        else torch.randn(BATCH, *shape)
    target = torch.randn(module(x).shape)
    params = {key: numbers(value) for key, value in module.named_parameters()}
    module.double()
    module.zero_grad()
    out = module(x if tokens else x.double())
    loss = nn.functional.mse_loss(out, target.double())
    loss.backward()
    text = layers.strip().replace("\n", "\n    ")
    return {
        "name": name,
        "run": f"model:\n  input: {shape}\n  layers:\n    {text}\nloss: mse\n",
        "batch": BATCH, "input": numbers(x), "target": numbers(target),
        "params": params, "output": numbers(out), "loss": loss.item(),
        "grads": {key: numbers(value.grad)
                  for key, value in module.named_parameters()}}


def main():
    cases = []
    for number, which in enumerate(CASES):
        torch.manual_seed(number + 1)
        cases.append(run(*which))
        print(cases[-1]["name"], cases[-1]["loss"])
    out = pathlib.Path(sys.argv[1]) / "layers.json"
    lines = ",\n".join(json.dumps(c) for c in cases)
    version = torch.__version__.split("+", maxsplit=1)[0]
    out.write_text(f'{{"torch": "{version}", "cases": [\n{lines}\n]}}\n',
                   encoding="ascii")


if __name__ == "__main__":
    main()
