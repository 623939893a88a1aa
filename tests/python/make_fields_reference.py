#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch computes for a model with several inputs and losses, for
test_preset_parity.c.

    tests/python/make_fields_reference.py tests/data

writes fields.json, which is committed; make_preset_reference.py tells how. Each
input and target is made by the formula, keyed by its name; each loss has its
own mean, and their weighted sum is trained for.
"""
import numpy
import torch
import torch.nn.functional as F

import make_preset_reference as base

BATCH, LR = 6, 0.05
MODEL = """model:
  input: {image: [2, 8, 6], words: [5], meta: [3]}
  layers:
    - {conv: {out: 4, kernel: 3, pad: 1}, from: image}
    - tanh
    - {name: seen, flatten: }
    - {embedding: {vocabulary: 9, out: 4}, from: words}
    - {name: read, flatten: }
    - {name: known, linear: {out: 6}, from: meta}
    - {concat: , from: [seen, read, known]}
    - linear: {out: 12}
    - {name: both, tanh: }
    - {name: which, linear: {out: 3}, from: both}
    - {name: how_much, linear: {out: 2}, from: both}
loss:
  - cross_entropy: {weight: [1, 2.5, 0.5], ignore_index: 1}
    from: which
    target: phase
  - {mse: , from: how_much, target: energy, weight: 0.3}
  - {mae: , from: how_much, target: energy, weight: 0.125, name: near}
"""


def reals(name, step, dtype, *shape):
    count = BATCH * int(numpy.prod(shape))
    x = base.number(name, step * count, count)
    return torch.tensor(x.reshape(BATCH, *shape)).to(dtype)


def wholes(name, step, below, *shape):
    count = BATCH * int(numpy.prod(shape))
    x = base.mix(base.key_of(name), step * count, count) >> numpy.uint64(33)
    return torch.tensor((x % numpy.uint64(below)).astype(numpy.int64)
                        .reshape(BATCH, *shape))


def network(net, step, dtype):
    seen = net.conv(reals("image", step, dtype, 2, 8, 6), 4, 3, 1).tanh()
    table = net.param("embedding1.weight", 9, 4)
    read = F.embedding(wholes("words", step, 9, 5), table)
    known = net.linear(reals("meta", step, dtype, 3), 6, name="known")
    both = net.linear(torch.cat([seen.flatten(1), read.flatten(1), known], 1),
                      12, name="linear2").tanh()
    return (net.linear(both, 3, name="which"),
            net.linear(both, 2, name="how_much"))


def loss_of(which, how_much, step):
    dtype = which.dtype
    phase = wholes("phase", step, 3)
    energy = reals("energy", step, dtype, 2)
    return (F.cross_entropy(which, phase, ignore_index=1,
                            weight=torch.tensor([1, 2.5, 0.5], dtype=dtype))
            + 0.3 * F.mse_loss(how_much, energy)
            + 0.125 * F.l1_loss(how_much, energy))


def run(dtype):
    net, losses, first = base.Net(dtype), [], None
    for step in range(base.STEPS):
        net.begin()
        which, how_much = network(net, step, dtype)
        loss = loss_of(which, how_much, step)
        grads = torch.autograd.grad(loss, list(net.params.values()))
        losses.append(loss.item())
        if step == 0:
            first = {"logits.phase": which.detach(),
                     "logits.energy": how_much.detach(),
                     "logits.near": how_much.detach(),
                     **dict(zip(net.params, grads))}
        with torch.no_grad():
            for param, grad in zip(net.params.values(), grads):
                param -= LR * grad
    return losses, first


if __name__ == "__main__":
    torch.set_num_threads(1)
    base.save("fields.json", '"cases": ', [
        base.case_of("three inputs, three losses", MODEL, BATCH, LR,
                     run(torch.float64), noise=run(torch.float32))])
