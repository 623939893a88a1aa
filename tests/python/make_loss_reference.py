#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch computes for losses, for test_loss_parity.c.

    pip install torch        (in an environment outside of this tree)
    tests/python/make_loss_reference.py tests/data

writes losses.json: for each case the loss of the run file, logits, targets; and
PyTorch's mean loss and the gradient of the logits, summed over samples. It is
committed: the test itself needs neither Python nor PyTorch. PyTorch computes in
float64 from float32 numbers, so that what is recorded carries no rounding of
its own.
"""
import json
import pathlib
import sys

import torch

F = torch.nn.functional
SAMPLES = 5
WEIGHT = [0.5, 2.0, 0.25, 1.0, 3.0, 0.75]

# loss options, sample of the output, dimension of the classes in [N, ...]
OPTIONS = [{}, {"label_smoothing": 0.2}, {"weight": WEIGHT},
           {"ignore_index": 4}, {"ignore_index": -100},
           {"label_smoothing": 0.1, "weight": WEIGHT, "ignore_index": 255}]
SHAPES = [([6], 1), ([7, 6], 2), ([6, 3, 5], 1)]


def numbers(tensor):
    """Shortest texts that give the same float32, or all digits that count."""
    if not tensor.dtype.is_floating_point:
        return tensor.flatten().tolist()
    return [float(f"{v:.9g}") for v in tensor.detach().flatten().tolist()]


def classes_case(shape, axis, options):
    x = (2 * torch.randn(SAMPLES, *shape)).double().requires_grad_()
    positions = [SAMPLES, *shape]
    del positions[axis]
    target = torch.randint(0, shape[axis - 1], positions)
    ignored = options.get("ignore_index", -100)
    if ignored not in range(shape[axis - 1]):
        target[torch.rand(positions) < 0.3] = ignored
        if "ignore_index" not in options:
            target[target == ignored] = 0
    arguments = dict(options)
    if "weight" in arguments:
        arguments["weight"] = torch.tensor(WEIGHT, dtype=torch.float64)
    loss = F.cross_entropy(x.movedim(axis, 1), target, **arguments)
    return "{cross_entropy: %s}" % json.dumps(options), x, target, loss


def yes_no_case(weight):
    x = (3 * torch.randn(SAMPLES, 4, 3)).double().requires_grad_()
    target = torch.rand(SAMPLES, 4, 3)
    loss = F.binary_cross_entropy_with_logits(
        x, target.double(), pos_weight=torch.tensor(weight).double())
    return "{bce: {pos_weight: %g}}" % weight, x, target, loss


def labels_case(shape, axis, option):
    """bce with a weight for each class, along dimension [axis]."""
    x = (3 * torch.randn(SAMPLES, *shape)).double().requires_grad_()
    target = torch.rand(SAMPLES, *shape)
    weight = torch.tensor(WEIGHT, dtype=torch.float64).reshape(
        [-1 if i == axis else 1 for i in range(1, len(shape) + 1)])
    loss = F.binary_cross_entropy_with_logits(x, target.double(),
                                              pos_weight=weight)
    return "{bce: {pos_weight: %s%s}}" % (WEIGHT, option), x, target, loss


def weighed(losses, shares):
    """The mean over samples that count by weights, and the weights."""
    weights = torch.tensor([0.5, 0, 2, 1.25, 0.75], dtype=torch.float64)
    each = weights.reshape([-1] + [1] * (losses.dim() - 1))
    return (each * losses).sum() / (each * shares).sum(), weights


def weighed_case(shape, axis, options):
    text, x, target, _ = classes_case(shape, axis, options)
    arguments = dict(options)
    shares = (target != options.get("ignore_index", -100)).double()
    if "weight" in arguments:
        weight = torch.tensor(WEIGHT, dtype=torch.float64)
        arguments["weight"] = weight
        shares = shares * weight[torch.where(shares > 0, target, 0)]
    losses = F.cross_entropy(x.movedim(axis, 1), target, reduction="none",
                             **arguments)
    loss, weights = weighed(losses, shares)
    return text[:-1] + ", sample_weight: w}", x, target, loss, weights


def weighed_numbers_case(name):
    x = (3 * torch.randn(SAMPLES, 4, 3)).double().requires_grad_()
    target = torch.rand(SAMPLES, 4, 3)
    losses = {"mse": F.mse_loss, "huber": F.huber_loss,
              "bce": F.binary_cross_entropy_with_logits}[name](
                  x, target.double(), reduction="none")
    loss, weights = weighed(losses, torch.ones_like(losses))
    return "{%s: , sample_weight: w}" % name, x, target, loss, weights


def shares_case(shape, axis, logarithms):
    x = F.log_softmax(2 * torch.randn(SAMPLES, *shape).double(), axis)
    x = x.float().double().requires_grad_()
    target = F.softmax(2 * torch.randn(SAMPLES, *shape), axis)
    if logarithms:
        target = target.log()
    else:
        target[target < 0.05] = 0
    loss = F.kl_div(x, target.double(), reduction="mean",
                    log_target=logarithms)
    return ("{kl: {log_target: true}}" if logarithms else "kl"), x, target, loss


def soft_case(shape, axis, options):
    """Probabilities of the classes as the target, some of them 0."""
    x = (2 * torch.randn(SAMPLES, *shape)).double().requires_grad_()
    target = F.softmax(2 * torch.randn(SAMPLES, *shape), axis)
    target[target < 0.05] = 0
    target /= target.sum(axis, keepdim=True)
    arguments = dict(options)
    if "weight" in arguments:
        arguments["weight"] = torch.tensor(WEIGHT, dtype=torch.float64)
    loss = F.cross_entropy(x.movedim(axis, 1),
                           target.double().movedim(axis, 1), **arguments)
    options = {"soft_target": True, **options}
    return "{cross_entropy: %s}" % json.dumps(options), x, target, loss


def main():
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(1)
    cases = [(shape, classes_case(shape, axis, options))
             for shape, axis in SHAPES for options in OPTIONS]
    cases += [([4, 3], yes_no_case(weight)) for weight in (1.0, 3.5)]
    # A seed of their own, so that cases before them change none of these.
    torch.manual_seed(2)
    cases += [(shape, labels_case(shape, axis, option))
              for shape, axis, option in (
                  ([6], 1, ""), ([7, 6], 2, ""), ([6, 3, 5], 1, ""),
                  ([6, 7], 1, ", classes: first"),
                  ([4, 3, 6], 3, ", classes: last"))]
    torch.manual_seed(3)
    cases += [(shape, weighed_case(shape, axis, options))
              for shape, axis in SHAPES for options in (OPTIONS[0], OPTIONS[5])]
    cases += [([4, 3], weighed_numbers_case(name))
              for name in ("mse", "huber", "bce")]
    torch.manual_seed(4)
    cases += [(shape, shares_case(shape, axis, logarithms))
              for shape, axis in (([6], 1), ([7, 6], 2))
              for logarithms in (False, True)]
    torch.manual_seed(5)
    cases += [(shape, soft_case(shape, axis, options))
              for shape, axis in SHAPES
              for options in ({}, {"label_smoothing": 0.2}, {"weight": WEIGHT},
                              {"label_smoothing": 0.1, "weight": WEIGHT})]
    records = []
    for shape, (text, x, target, loss, *weights) in cases:
        loss.backward()
        more = {"weights": numbers(weights[0])} if weights else {}
        records.append({**more, "loss": text, "shape": shape, "logits": numbers(x),
                        "target": numbers(target), "mean": loss.item(),
                        "gradient": numbers(x.grad.sum(0))})
    with open(out / "losses.json", "w", encoding="ascii") as file:
        json.dump({"torch": torch.__version__.split("+")[0],
                   "samples": SAMPLES, "cases": records}, file,
                  separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
