#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch's optimizers and schedules do, for
tests/optim/test_parity.c.

    pip install torch               (in an environment outside of this tree)
    tests/python/make_optim_reference.py tests/data

writes optim.json: a small least-squares problem, and for each case the run
file's sections, the learning rate of each of 20 steps, and the parameters after
them. It is committed: the test itself needs neither Python nor PyTorch.

PyTorch computes in float64. It has no LARS, no LAMB and no inverse square root;
those are written down here from their papers.
"""
import json
import pathlib
import sys

import torch
from torch.optim import lr_scheduler as sched
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS, EPOCH_STEPS, SAMPLES, WIDTH, OUT = 20, 5, 8, 3, 4


class Adaptive(torch.optim.Optimizer):
    """One tensor at a time; those of one dimension as if the ratio were 1."""

    def ratio(self, weight, length, scale=1.0):
        if weight.dim() <= 1:
            return 1.0
        return scale * (weight.norm() / length).item()


class LARS(Adaptive):
    """You, Gitman, Ginsburg 2017, algorithm 1."""

    def __init__(self, params, lr, momentum, weight_decay, trust):
        super().__init__(params, dict(lr=lr, momentum=momentum, trust=trust,
                                      weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            decay = group["weight_decay"]
            for w in group["params"]:
                local = self.ratio(w, w.grad.norm() + decay * w.norm(),
                                   group["trust"])
                v = self.state[w].setdefault("v", torch.zeros_like(w))
                v.mul_(group["momentum"])
                v.add_(group["lr"] * local * (w.grad + decay * w))
                w.sub_(v)


class LAMB(Adaptive):
    """You et al. 2020, algorithm 2; phi is the identity."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
                                      weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for x in group["params"]:
                s = self.state[x]
                s["t"] = s.get("t", 0) + 1
                m = s["m"] = b1 * s.get("m", 0) + (1 - b1) * x.grad
                v = s["v"] = b2 * s.get("v", 0) + (1 - b2) * x.grad ** 2
                r = (m / (1 - b1 ** s["t"])) / (
                    (v / (1 - b2 ** s["t"])).sqrt() + group["eps"])
                u = r + group["weight_decay"] * x
                x.sub_(group["lr"] * self.ratio(x, u.norm()) * u)


OPTIMIZERS = {
    "sgd": ("{sgd: {lr: 0.05}}", lambda p: torch.optim.SGD(p, lr=0.05)),
    "momentum": ("{sgd: {lr: 0.05, momentum: 0.9, weight_decay: 0.01}}",
                 lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9,
                                           weight_decay=0.01)),
    "nesterov": ("{sgd: {lr: 0.05, momentum: 0.9, nesterov: true}}",
                 lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9,
                                           nesterov=True)),
    "momentum-dampened": ("{sgd: {lr: 0.05, momentum: 0.9, dampening: 0.4, "
                          "weight_decay: 0.01}}",
                          lambda p: torch.optim.SGD(
                              p, lr=0.05, momentum=0.9, dampening=0.4,
                              weight_decay=0.01)),
    "adam": ("{adam: {lr: 0.05}}", lambda p: torch.optim.Adam(p, lr=0.05)),
    "adam-decay": ("{adam: {lr: 0.05, beta1: 0.8, beta2: 0.99, eps: 1.0e-6, "
                   "weight_decay: 0.1}}",
                   lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.99),
                                              eps=1e-6, weight_decay=0.1)),
    "adam-amsgrad": ("{adam: {lr: 0.05, beta2: 0.9, weight_decay: 0.1, "
                     "amsgrad: true}}",
                     lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.9, 0.9),
                                                weight_decay=0.1,
                                                amsgrad=True)),
    "adamw": ("{adamw: {lr: 0.05, weight_decay: 0.1}}",
              lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1)),
    "adamw-amsgrad": ("{adamw: {lr: 0.05, beta2: 0.9, weight_decay: 0.1, "
                      "amsgrad: true}}",
                      lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.9, 0.9),
                                                  weight_decay=0.1,
                                                  amsgrad=True)),
    "rmsprop": ("{rmsprop: {lr: 0.02}}",
                lambda p: torch.optim.RMSprop(p, lr=0.02)),
    "rmsprop-all": ("{rmsprop: {lr: 0.02, alpha: 0.9, eps: 1.0e-4, momentum: "
                    "0.5, centered: true, weight_decay: 0.01}}",
                    lambda p: torch.optim.RMSprop(
                        p, lr=0.02, alpha=0.9, eps=1e-4, momentum=0.5,
                        centered=True, weight_decay=0.01)),
    "rmsprop-centered": ("{rmsprop: {lr: 0.02, alpha: 0.9, eps: 1.0e-4, "
                         "centered: true}}",
                         lambda p: torch.optim.RMSprop(
                             p, lr=0.02, alpha=0.9, eps=1e-4, centered=True)),
    "rmsprop-momentum": ("{rmsprop: {lr: 0.02, momentum: 0.5}}",
                         lambda p: torch.optim.RMSprop(p, lr=0.02,
                                                       momentum=0.5)),
    "lamb": ("{lamb: {lr: 0.05, weight_decay: 0.1}}",
             lambda p: LAMB(p, 0.05, (0.9, 0.999), 1e-6, 0.1)),
    "lars": ("{lars: {lr: 0.5, trust: 0.1, weight_decay: 0.01}}",
             lambda p: LARS(p, 0.5, 0.9, 0.01, 0.1)),
}


def after(optimizer, shape, warmup):
    """A line over [warmup] steps to the full rate, then [shape]."""
    ramp = sched.LinearLR(optimizer, 1 / warmup, total_iters=warmup - 1)
    return sched.SequentialLR(optimizer, [ramp, shape], [warmup])


def over(optimizer, shape, warmup):
    """The line as a factor of [shape]."""
    ramp = sched.LinearLR(optimizer, 1 / warmup, total_iters=warmup - 1)
    return sched.ChainedScheduler([ramp, shape])


SCHEDULES = {
    "constant": ("constant", lambda o: sched.LambdaLR(o, lambda t: 1.0)),
    "constant-warmup": ("{constant: {warmup_steps: 4}}",
                        lambda o: sched.LinearLR(o, 1 / 4, total_iters=3)),
    "step": ("{step: {every: 1 epoch, gamma: 0.5}}",
             lambda o: sched.StepLR(o, EPOCH_STEPS, 0.5)),
    "step-warmup": ("{step: {every: 3 steps, gamma: 0.5, warmup_steps: 4}}",
                    lambda o: over(o, sched.StepLR(o, 3, 0.5), 4)),
    "multistep": ("{multistep: {milestones: [1, 3], gamma: 0.3}}",
                  lambda o: sched.MultiStepLR(
                      o, [EPOCH_STEPS, 3 * EPOCH_STEPS], 0.3)),
    "multistep-warmup": ("{multistep: {milestones: [7, 9], unit: steps, "
                         "warmup_steps: 3}}",
                         lambda o: over(o, sched.MultiStepLR(o, [7, 9]), 3)),
    "exponential": ("{exponential: {gamma: 0.9, every: 1 steps}}",
                    lambda o: sched.ExponentialLR(o, 0.9)),
    "exponential-warmup": ("{exponential: {gamma: 0.9, every: 1 steps, "
                           "warmup_steps: 5}}",
                           lambda o: over(o, sched.ExponentialLR(o, 0.9), 5)),
    "cosine": ("{cosine: {min_lr: 0.001}}",
               lambda o: sched.CosineAnnealingLR(o, STEPS, 0.001)),
    "cosine-warmup": ("{cosine: {warmup_steps: 4}}",
                      lambda o: after(o, sched.CosineAnnealingLR(o, STEPS - 4),
                                      4)),
    "restarts": ("{restarts: {period: 1 epoch, min_lr: 0.001}}",
                 lambda o: sched.CosineAnnealingWarmRestarts(
                     o, EPOCH_STEPS, 1, 0.001)),
    "restarts-warmup": ("{restarts: {period: 3 steps, mult: 2, "
                        "warmup_steps: 4}}",
                        lambda o: after(o, sched.CosineAnnealingWarmRestarts(
                            o, 3, 2), 4)),
    "one_cycle": ("one_cycle", lambda o: sched.OneCycleLR(
        o, o.param_groups[0]["lr"], total_steps=STEPS, cycle_momentum=False)),
    "one_cycle-warmup": ("{one_cycle: {warmup_steps: 5, div_factor: 10, "
                         "final_div_factor: 100}}",
                         lambda o: sched.OneCycleLR(
                             o, o.param_groups[0]["lr"], total_steps=STEPS,
                             cycle_momentum=False, pct_start=5 / STEPS,
                             div_factor=10, final_div_factor=100)),
    "polynomial": ("{polynomial: {power: 2}}",
                   lambda o: sched.PolynomialLR(o, STEPS, 2)),
    "polynomial-warmup": ("{polynomial: {warmup_steps: 4}}",
                          lambda o: after(o, sched.PolynomialLR(o, STEPS - 4),
                                          4)),
    "inverse_sqrt": ("{inverse_sqrt: {warmup_steps: 4}}",
                     lambda o: sched.LambdaLR(
                         o, lambda t: min((t + 1) / 4, (4 / (t + 1)) ** 0.5))),
}

def clip_both(parameters):
    """By norm first, then by value."""
    parameters = list(parameters)
    torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    torch.nn.utils.clip_grad_value_(parameters, 0.2)


# What else can be asked of a step.
CLIPS = {
    "clip_norm": ("clip_norm: 0.5", lambda p:
                  torch.nn.utils.clip_grad_norm_(p, 0.5)),
    "clip_value": ("clip_value: 0.05", lambda p:
                   torch.nn.utils.clip_grad_value_(p, 0.05)),
    "clip_both": ("clip_norm: 0.5, clip_value: 0.2", clip_both),
}


def problem(dtype):
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        # Short decimals are the same number everywhere.
        x = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return (x * 64).round() / 64
    x, y = draw(SAMPLES, WIDTH), draw(SAMPLES, OUT)
    model = torch.nn.Linear(WIDTH, OUT).to(dtype)
    with torch.no_grad():
        model.weight.copy_(draw(OUT, WIDTH))
        model.bias.copy_(draw(OUT))
    return x.to(dtype), y.to(dtype), model


# What a schedule watches, after each step.
METRICS = [1, 0.8, 0.8, 0.81, 0.9, 0.799, 0.7, 0.75, float("nan"), 0.72, 0.71,
           0.5, 0.499, 0.498, 0.6, 0.7, 0.8, 0.4, 0.5, 0.6]
PLATEAUS = {
    "plateau": ("{plateau: {factor: 0.5, patience: 1, threshold: 0.01, "
                "cooldown: 2, min_lr: 0.009}}",
                lambda o: sched.ReduceLROnPlateau(
                    o, "min", 0.5, 1, 0.01, cooldown=2, min_lr=0.009)),
    "plateau-most": ("{plateau: {metric: accuracy, factor: 0.3, patience: 2, "
                     "threshold: 0.05, threshold_mode: abs}}",
                     lambda o: sched.ReduceLROnPlateau(
                         o, "max", 0.3, 2, 0.05, "abs")),
    "plateau-rel": ("{plateau: {mode: max, patience: 0, threshold: 0}}",
                    lambda o: sched.ReduceLROnPlateau(o, "max", patience=0,
                                                      threshold=0, eps=0)),
}


def run(make_optimizer, make_schedule, clip=None, ema=None, metrics=None):
    x, y, model = problem(torch.float64)
    optimizer = make_optimizer(model)
    schedule = make_schedule(optimizer)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(ema)) \
        if ema else None
    rates = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).sum() / (2 * SAMPLES)
        loss.backward()
        if clip:
            clip(model.parameters())
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step(*([metrics[step]] if metrics else []))
        if average:
            average.update_parameters(model)
    result = {"lr": rates, "weight": model.weight.flatten().tolist(),
              "bias": model.bias.tolist()}
    if average:
        result["ema_weight"] = average.module.weight.flatten().tolist()
        result["ema_bias"] = average.module.bias.tolist()
    return result


def cases():
    for name, (text, make) in OPTIMIZERS.items():
        for shape, (schedule, make_schedule) in SCHEDULES.items():
            # Few variants see all schedules, all see some.
            if shape not in ("constant", "one_cycle") and "-" in name:
                continue
            yield f"{name} {shape}", f"optimizer: {text}\n" \
                f"schedule: {schedule}\n", run(
                    lambda model: make(model.parameters()), make_schedule)
    constant = SCHEDULES["constant"][1]
    for name, (text, clip) in CLIPS.items():
        optimizer, make = OPTIMIZERS["momentum"]
        yield name, f"optimizer: {optimizer}\ntrain: {{{text}}}\n", run(
            lambda model: make(model.parameters()), constant, clip=clip)
    for name, (text, make_schedule) in PLATEAUS.items():
        optimizer, make = OPTIMIZERS["momentum"]
        result = run(lambda model: make(model.parameters()), make_schedule,
                     metrics=METRICS)
        result["metrics"] = [None if m != m else m for m in METRICS]
        yield name, f"optimizer: {optimizer}\nschedule: {text}\n", result
    yield "ema", "optimizer: {adam: {lr: 0.05}}\nema: {decay: 0.9}\n", run(
        lambda model: torch.optim.Adam(model.parameters(), lr=0.05), constant,
        ema=0.9)
    yield "groups", "optimizer:\n  sgd: {lr: 0.05, momentum: 0.9, " \
        "weight_decay: 0.1}\n  groups:\n    - {match: '*.bias', " \
        "weight_decay: 0, momentum: 0.5}\n    - {match: '*.weight', lr: 0.02}" \
        "\nschedule: {cosine: {warmup_steps: 4}}\n", run(
            lambda model: torch.optim.SGD(
                [{"params": [model.bias], "weight_decay": 0, "momentum": 0.5},
                 {"params": [model.weight], "lr": 0.02}],
                lr=0.05, momentum=0.9, weight_decay=0.1),
            SCHEDULES["cosine-warmup"][1])


def main():
    out = pathlib.Path(sys.argv[1])
    x, y, model = problem(torch.float64)
    document = {"torch": torch.__version__.split("+")[0], "steps": STEPS,
                "epoch_steps": EPOCH_STEPS, "x": x.tolist(), "y": y.tolist(),
                "weight": model.weight.flatten().tolist(),
                "bias": model.bias.tolist(),
                "cases": [dict(name=name, run=text, **result)
                          for name, text, result in cases()]}

    def short(value):
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, list):
            return [short(item) for item in value]
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        return value
    with open(out / "optim.json", "w", encoding="ascii") as file:
        # One case a line.
        text = json.dumps(short(document)).replace('{"name"', '\n{"name"')
        file.write(text.replace('"cases"', '\n"cases"') + "\n")
    print(len(document["cases"]), "cases")


if __name__ == "__main__":
    main()
