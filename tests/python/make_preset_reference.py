#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Record what PyTorch computes for every preset, for test_preset_parity.c and
test_preset_curves.c.

    pip install torch numpy        (in an environment outside of this tree)
    tests/python/make_preset_reference.py tests/data

writes presets.json and preset_curves.json, which are committed: the test needs neither Python nor
PyTorch. Weights and samples are made by a formula (number, below) on both sides,
so the file holds results only: the loss and gradients of a first step, and the
losses of 20 steps. Of each gradient, and of the logits, it holds the norm and
projections on PROBES vectors of random signs: the difference of two tensors has
the root mean square of the differences of their projections as its norm, on
average.

preset_curves.json has the losses of 20 steps with optimizers and schedules: the
presets of FULL with each optimizer and each schedule with warm-up, all others
with two optimizers. LAMB and LARS are those of make_optim_reference.py, from
their papers.

The networks are written here once more, by hand, with torch.nn.functional; a
layer's name is that of cddp's layer, or its kind and number. PyTorch computes in
float64 from float32 weights, so what is recorded carries no rounding of its own;
`noise` is how far PyTorch's own float32 is from it, relative to the norm, and
`noise16` how far its autocast to bfloat16 is; `drift` and `drift16` are those of
the losses.
"""
import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

from make_optim_reference import LAMB, LARS, SCHEDULES

STEPS, PROBES = 20, 8
MASK = (1 << 64) - 1


def key_of(name):
    """FNV-1a."""
    key = 0xcbf29ce484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001b3 & MASK
    return key


def mix(key, first, count):
    """splitmix64 of key + first, key + first + 1, ..."""
    with numpy.errstate(over="ignore"):
        z = numpy.arange(count, dtype=numpy.uint64) \
            + numpy.uint64((key + first + 0x9e3779b97f4a7c15) & MASK)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        return z ^ (z >> numpy.uint64(31))


def number(name, first, count):
    """Multiples of 2^-23 in [-1, 1)."""
    bits = (mix(key_of(name), first, count) >> numpy.uint64(40))
    return bits.astype(numpy.float64) / 2**23 - 1


def weight(name, shape):
    """Gains around 1, shifts around 0, weights by their fan-in; all exact in
    float32."""
    count = math.prod(shape)
    x = number(name, 0, count)
    if len(shape) == 1:
        x = x / 8 + (1 if name.endswith(".weight") else 0)
    else:
        fan = count // shape[0]
        x = x * 2.0**-(int(math.log2(fan)) // 2)
    return torch.tensor(x.reshape(shape))


def probes(tensor):
    x = tensor.detach().double().reshape(-1).numpy()
    bits = mix(key_of("probe"), 0, x.size)
    found = [float(numpy.linalg.norm(x))]
    for k in range(PROBES):
        signs = 1 - 2 * ((bits >> numpy.uint64(k)) & numpy.uint64(1)).astype(float)
        found.append(float((x * signs).sum()))
    return found


class Net:
    """Layers by kind; parameters are made when first met, by name."""

    def __init__(self, dtype):
        self.dtype, self.params, self.counts = dtype, {}, {}

    def begin(self):
        self.counts = {}

    def named(self, kind, name):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return name or f"{kind}{self.counts[kind]}"

    def param(self, name, *shape):
        if name not in self.params:
            value = weight(name, shape).to(self.dtype)
            self.params[name] = value.requires_grad_(True)
        return self.params[name]

    def conv(self, x, out, kernel, pad=0, stride=1, groups=1, dilation=1,
             bias=True, name=None):
        name = self.named("conv", name)
        space = x.dim() - 2
        w = self.param(name + ".weight", out, x.shape[1] // groups,
                       *[kernel] * space)
        b = self.param(name + ".bias", out) if bias else None
        run = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[space]
        return run(x, w, b, stride, pad, dilation, groups)

    def batchnorm(self, x, name=None):
        name = self.named("batchnorm", name)
        return F.batch_norm(x, None, None,
                            self.param(name + ".weight", x.shape[1]),
                            self.param(name + ".bias", x.shape[1]), True)

    def layernorm(self, x, name=None):
        name = self.named("layernorm", name)
        return F.layer_norm(x, x.shape[-1:],
                            self.param(name + ".weight", x.shape[-1]),
                            self.param(name + ".bias", x.shape[-1]))

    def linear(self, x, out, last=False, bias=True, name=None):
        name = self.named("linear", name)
        if not last:
            x = x.flatten(1)
        return F.linear(x, self.param(name + ".weight", out, x.shape[-1]),
                        self.param(name + ".bias", out) if bias else None)

    def lstm(self, x, out, name, reverse=False):
        """All states, in the order of the tokens."""
        w = [self.param(f"{name}.{part}", 4 * out, *rest) for part, rest in (
            ("weight_ih", (x.shape[2],)), ("weight_hh", (out,)),
            ("bias_ih", ()), ("bias_hh", ()))]
        h = c = x.new_zeros(x.shape[0], out)
        states = [None] * x.shape[1]
        order = range(x.shape[1])
        for t in reversed(order) if reverse else order:
            i, f, g, o = (F.linear(x[:, t], w[0], w[2])
                          + F.linear(h, w[1], w[3])).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states[t] = h
        return torch.stack(states, 1)

    def position(self, x, name):
        return x + self.param(name + ".weight", *x.shape[1:])

    def attention(self, x, heads, causal=False):
        n, t, width = x.shape
        q, k, v = (p.reshape(n, t, heads, width // 3 // heads).transpose(1, 2)
                   for p in x.chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, -1)


def mlp(net, x):
    for out in (24, 16):
        x = net.batchnorm(net.linear(x, out, bias=False)).relu()
    return net.linear(x, 5)


def lenet(net, x):
    x = F.max_pool2d(net.conv(x, 6, 5, pad=2).relu(), 2)
    x = F.max_pool2d(net.conv(x, 16, 5).relu(), 2)
    x = net.linear(net.linear(x, 120).relu(), 84)
    return net.linear(x.relu(), 5)


def resnet(depths, bottleneck, imagenet, width):
    def block(net, name, x, channels, stride, project):
        def conv(y, number, out, kernel, step):
            y = net.conv(y, out, kernel, kernel // 2, step, bias=False,
                         name=f"{name}_conv{number}")
            return net.batchnorm(y, f"{name}_bn{number}")
        out = 4 * channels if bottleneck else channels
        if bottleneck:
            y = conv(x, 1, channels, 1, 1).relu()
            y = conv(y, 2, channels, 3, stride).relu()
            y = conv(y, 3, out, 1, 1)
        else:
            y = conv(x, 1, channels, 3, stride).relu()
            y = conv(y, 2, channels, 3, 1)
        if project:
            x = net.conv(x, out, 1, 0, stride, bias=False, name=name + "_down")
            x = net.batchnorm(x, name + "_downbn")
        return (x + y).relu()

    def run(net, x):
        x = net.conv(x, width, 7 if imagenet else 3, 3 if imagenet else 1,
                     2 if imagenet else 1, bias=False, name="stem_conv")
        x = net.batchnorm(x, "stem_bn").relu()
        if imagenet:
            x = F.max_pool2d(x, 3, 2, 1)
        for s, depth in enumerate(depths):
            for b in range(depth):
                x = block(net, f"s{s + 1}b{b + 1}", x, width << s,
                          2 if s > 0 and b == 0 else 1,
                          b == 0 and (s > 0 or bottleneck))
        return net.linear(x.flatten(2).mean(2), 5, name="head")
    return run


def unet(width, depth, pool):
    def pair(net, x, channels):
        for _ in range(2):
            x = net.batchnorm(net.conv(x, channels, 3, 1, bias=False)).relu()
        return x

    def run(net, x):
        downs = []
        for d in range(depth):
            downs.append(pair(net, x, width << d))
            x = pool(downs[-1], 2)
        x = pair(net, x, width << depth)
        for d in reversed(range(depth)):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = net.conv(x, width << d, 1, name=f"up{d}")
            x = pair(net, torch.cat((x, downs[d]), 1), width << d)
        return net.conv(x, 2, 1, name="head")
    return run


def transformer(net, x, depth, heads, mlp, causal, approximate):
    """Blocks with the norm ahead; vit's and gpt2's names of layers."""
    for b in range(1, depth + 1):
        one, two = f"b{b}_attention", f"b{b}_mlp"
        width = x.shape[-1]
        inner = (lambda part: part + "_in") if causal else (lambda part: None)
        y = net.linear(net.layernorm(x), 3 * width, True, name=inner(one))
        y = net.attention(y, heads, causal)
        x = x + net.linear(y, width, True, name=one + "_out")
        y = net.linear(net.layernorm(x), mlp * width, True, name=inner(two))
        y = F.gelu(y, approximate=approximate)
        x = x + net.linear(y, width, True, name=two + "_out")
    return net.layernorm(x, "norm")


def vit(net, x):
    x = net.conv(x, 12, 4, stride=4, name="patches")
    x = net.position(x.flatten(2).transpose(1, 2), "tokens")
    x = transformer(net, x, 2, 3, 4, False, "none")
    return net.linear(x.mean(1), 5, name="head")


def gpt2(net, x):
    table = net.param("tokens.weight", 11, 12)
    x = net.position(F.embedding(x.long(), table), "start")
    x = transformer(net, x, 2, 3, 4, True, "tanh")
    return x @ table.T


def lstm(net, x):
    for name in ("l1", "l2"):
        there = net.lstm(x, 6, name + "_there")
        back = net.lstm(x, 6, name + "_back", True)
        x = torch.cat((there, back), 2)
    # the last state of each way: behind its last token
    return net.linear(torch.cat((there[:, -1], back[:, 0]), 1), 5, name="head")


def lstm_each(net, x):
    x = F.embedding(x.long(), net.param("tokens.weight", 11, 6))
    return net.linear(net.lstm(x, 6, "l1"), 11, True, name="head")


def cosmoflow(net, x):
    for d in range(3):
        x = F.leaky_relu(net.conv(x, 4 << d, 2, 1), 0.3)
        x = F.max_pool3d(x, 2)
    for out in (16, 8):
        x = F.leaky_relu(net.linear(x, out), 0.3)
    return net.linear(x, 4, name="head").tanh() * 1.2


def deepcam(net, x):
    w = 4

    def conv(y, out, kernel, relu=True, **options):
        y = net.batchnorm(net.conv(y, out, kernel, bias=False, **options))
        return y.relu() if relu else y

    def separable(y, out, stride, relu):
        y = net.conv(y, y.shape[1], 3, 1, stride, y.shape[1], bias=False)
        return conv(y, out, 1, relu)

    def named(y, out, stride, name):
        """The second one of a block: its last batch norm has a name."""
        y = net.conv(y, y.shape[1], 3, 1, stride, y.shape[1], bias=False)
        return net.batchnorm(net.conv(y, out, 1, bias=False), name)

    def block(y, out, stride, name):
        z = named(separable(y, out, 1, True), out, stride, name + "_body")
        if out != y.shape[1] or stride != 1:
            y = net.batchnorm(net.conv(y, out, 1, stride=stride, bias=False),
                              name + "_short")
        return (y + z).relu()

    size = x.shape[2:]
    x = conv(conv(x, w, 3, pad=1, stride=2), w, 3, pad=1)
    fine = block(x, 2 * w, 2, "fine")
    x = block(block(fine, 4 * w, 2, "coarse"), 8 * w, 2, "entry16")
    x = block(x, 8 * w, 1, "middle1")
    parts = [conv(x, 4 * w, 1)]
    parts += [conv(x, 4 * w, 3, pad=r, dilation=r) for r in (6, 12, 18)]
    image = net.conv(F.adaptive_avg_pool2d(x, 1), 4 * w, 1).relu()
    parts.append(image.expand(-1, -1, *x.shape[2:]))
    x = conv(torch.cat(parts, 1), 4 * w, 1)
    x = F.interpolate(x, scale_factor=4, mode="bilinear", align_corners=False)
    x = torch.cat((x, conv(fine, w, 1)), 1)
    x = separable(separable(x, 4 * w, 1, True), 4 * w, 1, True)
    x = net.conv(x, 3, 1)
    x = F.interpolate(x, scale_factor=4, mode="bilinear", align_corners=False)
    assert x.shape[2:] == size
    return x


# Name, network, model of the run file, loss, learning rate, samples a step. The
# rates of the deep networks with batch norm are small, as larger ones are chaotic
# here: rounding decides on which side of a kink a number falls, and grows.
CASES = [
    ("mlp", mlp, "preset: mlp, input: [3, 4], classes: 5, hidden: [24, 16], "
     "batchnorm: true", "cross_entropy", 0.05, 8),
    ("lenet", lenet, "preset: lenet, input: [1, 16, 16], classes: 5",
     "cross_entropy", 0.05, 4),
    ("resnet18", resnet((2, 2, 2, 2), False, False, 4), "preset: resnet18, "
     "input: [3, 16, 16], classes: 5, width: 4", "cross_entropy", 2e-5, 8),
    ("resnet34", resnet((3, 4, 6, 3), False, False, 4), "preset: resnet34, "
     "input: [3, 16, 16], classes: 5, width: 4", "cross_entropy", 1e-5, 8),
    ("resnet50", resnet((3, 4, 6, 3), True, True, 4), "preset: resnet50, "
     "input: [3, 64, 64], classes: 5, width: 4, stem: imagenet",
     "cross_entropy", 1e-6, 8),
    ("unet2d", unet(4, 2, F.max_pool2d), "preset: unet2d, input: [2, 16, 8], "
     "out: 2, width: 4, depth: 2", "mse", 0.05, 4),
    ("unet3d", unet(4, 2, F.max_pool3d), "preset: unet3d, input: [1, 8, 8, 4], "
     "out: 2, width: 4, depth: 2", "mse", 0.03, 3),
    ("vit", vit, "preset: vit, input: [3, 16, 12], classes: 5, patch: 4, "
     "width: 12, depth: 2, heads: 3", "cross_entropy", 0.05, 4),
    ("cosmoflow", cosmoflow, "preset: cosmoflow, input: [2, 16, 16, 16], "
     "width: 4, depth: 3, hidden: [16, 8], dropout: 0", "mse", 0.05, 3),
    ("deepcam", deepcam, "preset: deepcam, input: [4, 64, 32], width: 4, "
     "blocks: 1", "cross_entropy", 0.005, 4),
    ("gpt2", gpt2, "preset: gpt2, input: [10], vocabulary: 11, width: 12, "
     "depth: 2, heads: 3, dropout: 0", "cross_entropy", 0.05, 4),
    ("lstm", lstm, "preset: lstm, input: [7, 3], out: 5, width: 6, depth: 2, "
     "bidirectional: true", "cross_entropy", 0.1, 4),
    ("lstm of tokens", lstm_each, "preset: lstm, input: [9], vocabulary: 11, "
     "out: 11, width: 6, each: true", "cross_entropy", 0.1, 4),
]
TOKENS = ("gpt2", "lstm of tokens")

# Section of the run file, and the same in PyTorch.
OPTIMIZERS = {
    "momentum": ("{sgd: {lr: RATE, momentum: 0.9, weight_decay: 0.01}}",
                 lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9,
                                               weight_decay=0.01)),
    "nesterov": ("{sgd: {lr: RATE, momentum: 0.9, nesterov: true}}",
                 lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9,
                                               nesterov=True)),
    "adam": ("{adam: {lr: RATE, eps: 1.0e-6}}",
             lambda p, lr: torch.optim.Adam(p, lr=lr, eps=1e-6)),
    "adamw": ("{adamw: {lr: RATE, eps: 1.0e-6, weight_decay: 0.1}}",
              lambda p, lr: torch.optim.AdamW(p, lr=lr, eps=1e-6,
                                              weight_decay=0.1)),
    "rmsprop": ("{rmsprop: {lr: RATE, alpha: 0.9, eps: 1.0e-4}}",
                lambda p, lr: torch.optim.RMSprop(p, lr=lr, alpha=0.9,
                                                  eps=1e-4)),
    "lamb": ("{lamb: {lr: RATE, weight_decay: 0.1}}",
             lambda p, lr: LAMB(p, lr, (0.9, 0.999), 1e-6, 0.1)),
    "lars": ("{lars: {lr: RATE, trust: 0.1, weight_decay: 0.01}}",
             lambda p, lr: LARS(p, lr, 0.9, 0.01, 0.1)),
}
RATES = {"momentum": 0.02, "nesterov": 0.02, "adam": 0.002, "adamw": 0.002,
         "rmsprop": 0.002, "lamb": 0.02, "lars": 0.05}
FULL = ("mlp", "gpt2")
REST = ("momentum", "adamw")
WARM = [name for name in SCHEDULES
        if "warmup" in SCHEDULES[name][0]]


def inputs(case, step, dtype):
    name, _, model, _, _, batch = case
    shape = [int(n) for n in
             model.split("input: [")[1].split("]")[0].split(",")]
    count = math.prod(shape)
    first = step * batch * count
    if name in TOKENS:
        tokens = (mix(key_of("input"), first, batch * count)
                  >> numpy.uint64(33)) % numpy.uint64(11)
        return torch.tensor(tokens.astype(numpy.int64).reshape(batch, count))
    return torch.tensor(number("input", first, batch * count)
                        .reshape(batch, *shape)).to(dtype)


def loss_of(case, y, step):
    _, _, _, loss, _, batch = case
    if loss == "mse":
        count = y.numel() // batch
        target = number("target", step * batch * count, batch * count)
        return F.mse_loss(y, torch.tensor(target.reshape(y.shape)).to(y.dtype))
    axis = 2 if case[0] in TOKENS else 1
    y = y.movedim(axis, -1)
    count = y.numel() // y.shape[-1]
    target = (mix(key_of("target"), step * count, count)
              >> numpy.uint64(33)) % numpy.uint64(y.shape[-1])
    return F.cross_entropy(y.reshape(-1, y.shape[-1]),
                           torch.tensor(target.astype(numpy.int64)))


def run(case, dtype, autocast=False):
    _, network, _, _, lr, _ = case
    net, losses, first = Net(dtype), [], None
    for step in range(STEPS):
        net.begin()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = network(net, inputs(case, step, dtype)).to(dtype)
        loss = loss_of(case, y, step)
        grads = torch.autograd.grad(loss, list(net.params.values()))
        losses.append(loss.item())
        if step == 0:
            first = {"logits": y.detach(), **dict(zip(net.params, grads))}
        with torch.no_grad():
            for param, grad in zip(net.params.values(), grads):
                param -= lr * grad
    return losses, first


def curve(case, optimizer, schedule, lr, dtype):
    """The losses of 20 steps."""
    _, network, _, _, _, _ = case
    net, losses, at, plan = Net(dtype), [], None, None
    for step in range(STEPS):
        net.begin()
        loss = loss_of(case, network(net, inputs(case, step, dtype)), step)
        if at is None:
            at = OPTIMIZERS[optimizer][1](list(net.params.values()), lr)
            plan = SCHEDULES[schedule][1](at)
        at.zero_grad()
        loss.backward()
        losses.append(loss.item())
        at.step()
        plan.step()
    return losses


def drift_of(losses, single):
    """How far float32 is, relative."""
    return float(f"{max(abs(a - b) / abs(a) for a, b in zip(losses, single)):.2g}")


def curves():
    for case in CASES:
        full = case[0] in FULL
        for optimizer in OPTIMIZERS if full else REST:
            for schedule in WARM if full else ("cosine-warmup",):
                # as much slower as plain descent must be
                lr = RATES[optimizer] * min(1, case[4] / 0.05)
                exact = curve(case, optimizer, schedule, lr, torch.float64)
                single = curve(case, optimizer, schedule, lr, torch.float32)
                still = curve(case, "momentum", schedule, 0, torch.float64)
                # else the test could not tell that anything is learnt
                assert drift_of(exact, still) > max(
                    1e-5, 4 * drift_of(exact, single)), (case[0], optimizer)
                yield {"preset": case[0], "name":
                       f"{case[0]}, {optimizer}, {schedule}",
                       "run": f"optimizer: {OPTIMIZERS[optimizer][0]}\n"
                       .replace("RATE", f"{lr:.9g}")
                       + f"schedule: {SCHEDULES[schedule][0]}\n",
                       "drift": drift_of(exact, single),
                       "losses": [float(f"{loss:.8g}") for loss in exact]}


def save(name, head, rows):
    """One line a row."""
    with open(pathlib.Path(sys.argv[1]) / name, "w", encoding="ascii") as file:
        file.write('{"torch": "%s", %s[\n'
                   % (torch.__version__.split("+")[0], head))
        file.write(",\n".join(json.dumps(row, separators=(",", ":"))
                              for row in rows))
        file.write("\n]}\n")


def rounded(values):
    return [float(f"{value:.9g}") for value in values]


def case_of(name, text, batch, lr, double, **others):
    """What is recorded of a run in float64, and how far it is from others, such
    as noise=that in float32; each is (losses, tensors of the first step)."""
    losses, first = double
    found = {"name": name, "batch": batch, "lr": lr, "run": text,
             "losses": rounded(losses),
             "tensors": {key: {"probes": rounded(probes(tensor))}
                         for key, tensor in first.items()}}
    for noise, (other_losses, other_first) in others.items():
        worst = 0
        for key, tensor in first.items():
            far = float((tensor - other_first[key].double()).norm()
                        / tensor.norm())
            worst = max(worst, far)
            found["tensors"][key][noise] = float(f"{far:.2g}")
        drift = noise.replace("noise", "drift")
        found[drift] = drift_of(losses, other_losses)
        print(name, losses[0], losses[-1], noise, "of gradients:", worst,
              "of losses:", found[drift])
    return found


def main():
    torch.set_num_threads(1)
    save("presets.json", '"cases": ', [
        case_of(case[0], f"model: {{{case[2]}}}\nloss: {case[3]}\n", case[5],
                case[4], run(case, torch.float64),
                noise=run(case, torch.float32),
                noise16=run(case, torch.float32, True))
        for case in CASES])
    found = list(curves())
    for row in found:
        print(row["name"], row["losses"][0], row["losses"][-1], row["drift"])
    save("preset_curves.json", '"epoch_steps": 5, "curves": ', found)


if __name__ == "__main__":
    main()
