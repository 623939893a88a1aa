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


class Through(nn.Module):
    """A position, then a function without parameters."""

    def __init__(self, shape, function):
        super().__init__()
        self.at = Position(*shape)
        self.function = function

    def forward(self, x):
        return self.function(self.at(x))


def through(name, shape, layer, function):
    """A case of one layer without parameters."""
    CASES.append((name, shape, f"- {{name: at, position: }}\n- {layer}", 0,
                  lambda: Through(shape, function)))


F = nn.functional
through("avgpool", [2, 7, 8], "avgpool: {kernel: 3, stride: 2, pad: 1}",
        lambda x: F.avg_pool2d(x, 3, 2, 1))
through("avgpool, pad not counted", [2, 3, 5, 4],
        "avgpool: {kernel: [2, 3, 2], stride: 1, pad: [0, 1, 1], "
        "count_pad: false}",
        lambda x: F.avg_pool3d(x, (2, 3, 2), 1, (0, 1, 1), False, False))
through("adaptive_avgpool", [2, 7, 5], "adaptive_avgpool: {size: [3, 2]}",
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)))
through("adaptive_avgpool to one", [3, 11], "adaptive_avgpool",
        lambda x: F.adaptive_avg_pool1d(x, 1))
through("global max pooling", [3, 5, 4], "max",
        lambda x: F.adaptive_max_pool2d(x, 1).flatten(1))
through("max over tokens", [6, 4], "max: {axes: 1}",
        lambda x: x.max(1).values)
through("pad", [2, 3, 4], "pad: {before: [1, 2], after: [0, 3], value: 0.5}",
        lambda x: F.pad(x, (2, 3, 1, 0), value=0.5))
through("pad, reflect", [2, 3, 4],
        "pad: {before: 2, after: [1, 3], mode: reflect}",
        lambda x: F.pad(x, (2, 3, 2, 1), mode="reflect"))
through("split", [6, 5], "split: {parts: 3, part: 2}",
        lambda x: x.chunk(3, 1)[1])
through("upsample, nearest", [2, 3, 4], "upsample: {factor: [2, 3]}",
        lambda x: F.interpolate(x, scale_factor=(2, 3)))
for space, mode in (([5], "linear"), ([3, 4], "bilinear"),
                    ([2, 3, 2], "trilinear")):
    factor = (3, 2, 4)[:len(space)]
    through(f"upsample, {mode}", [2, *space],
            f"upsample: {{factor: {list(factor)}, mode: linear}}",
            lambda x, factor=factor, mode=mode:
            F.interpolate(x, scale_factor=factor, mode=mode))


def plain(name, shape, layers, make):
    """A case of torch's own module, which cddp's only layer is called at."""
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.at = make()

        def forward(self, x):
            return self.at(x)
    CASES.append((name, shape, f"- {{name: at, {layers}}}", 0, Plain))


plain("conv_transpose", [4, 5, 4],
      "conv_transpose: {out: 6, kernel: [3, 2], stride: 2, pad: [1, 0], "
      "out_pad: [1, 0], groups: 2}",
      lambda: nn.ConvTranspose2d(4, 6, (3, 2), 2, (1, 0), (1, 0), 2))
plain("conv_transpose, dilated sequence", [3, 7],
      "conv_transpose: {out: 2, kernel: 3, stride: 2, pad: 1, dilation: 2, "
      "bias: false}",
      lambda: nn.ConvTranspose1d(3, 2, 3, 2, 1, bias=False, dilation=2))
plain("conv_transpose, volume", [2, 2, 3, 2],
      "conv_transpose: {out: 3, kernel: 2, stride: 2}",
      lambda: nn.ConvTranspose3d(2, 3, 2, 2))


class Recurrent(nn.Module):
    """torch.nn.LSTM or GRU behind a position, reversed or not."""

    def __init__(self, kind, reverse, last):
        super().__init__()
        self.start = Position(5, 3)
        self.at = kind(3, 4, batch_first=True, bias=not reverse)
        self.reverse, self.last = reverse, last

    def forward(self, x):
        x = self.start(x)
        y, _ = self.at(x.flip(1) if self.reverse else x)
        if self.last:
            return y[:, -1]
        return y.flip(1) if self.reverse else y


for kind in ("lstm", "gru"):
    for options, reverse, last in (("", False, False),
                                   (", reverse: true, bias: false", True,
                                    False), (", last: true", False, True)):
        CASES.append((
            kind + options, [5, 3],
            f"- {{name: start, position: }}\n"
            f"- {{name: at, {kind}: {{out: 4{options}}}}}", 0,
            lambda which=getattr(nn, kind.upper()), r=reverse, last=last:
            Recurrent(which, r, last)))

plain("conv, same", [3, 5, 6],
      "conv: {out: 4, kernel: [2, 4], pad: same}",
      lambda: nn.Conv2d(3, 4, (2, 4), padding="same"))
plain("conv, same, dilated sequence", [3, 11],
      "conv: {out: 2, kernel: 4, pad: same, dilation: 3}",
      lambda: nn.Conv1d(3, 2, 4, padding="same", dilation=3))
plain("conv, same, volume, groups", [4, 3, 4, 5],
      "conv: {out: 6, kernel: [3, 2, 1], pad: same, groups: 2, bias: false}",
      lambda: nn.Conv3d(4, 6, (3, 2, 1), padding="same", groups=2,
                        bias=False))
through("adaptive_maxpool", [2, 7, 5], "adaptive_maxpool: {size: [3, 2]}",
        lambda x: F.adaptive_max_pool2d(x, (3, 2)))
through("adaptive_maxpool, sequence", [3, 11], "adaptive_maxpool: {size: 4}",
        lambda x: F.adaptive_max_pool1d(x, 4))
through("softmax", [7], "softmax", lambda x: F.softmax(x, 1))
through("softmax of channels", [5, 3, 4], "softmax: {axis: 1}",
        lambda x: F.softmax(x, 1))
through("log_softmax of tokens", [4, 7], "log_softmax",
        lambda x: F.log_softmax(x, 2))
through("log_softmax of channels", [5, 3, 4], "log_softmax: {axis: 1}",
        lambda x: F.log_softmax(x, 1))


class Prelu(nn.Module):
    """torch.nn.PReLU behind a position."""

    def __init__(self, shape, slopes):
        super().__init__()
        self.start = Position(*shape)
        self.at = nn.PReLU(slopes)
        if slopes > 1:
            nn.init.normal_(self.at.weight)

    def forward(self, x):
        return self.at(self.start(x))


for name, shape, slopes in (("prelu", [3, 4], 1),
                            ("prelu of features", [6], 6),
                            ("prelu of channels", [3, 4, 2], 3)):
    options = "{channels: true}" if slopes > 1 else ""
    CASES.append((name, shape, "- {name: start, position: }\n"
                  f"- {{name: at, prelu: {options}}}", 0,
                  lambda shape=shape, slopes=slopes: Prelu(shape, slopes)))


class Norm(nn.Module):
    """torch.nn.BatchNorm2d behind a position; frozen: with statistics of
    earlier steps."""

    def __init__(self, affine, frozen):
        super().__init__()
        self.start = Position(3, 4, 2)
        self.at = nn.BatchNorm2d(3, affine=affine)
        if affine:
            nn.init.normal_(self.at.weight)
            nn.init.normal_(self.at.bias)
        if frozen:
            nn.init.normal_(self.at.running_mean)
            nn.init.uniform_(self.at.running_var, 0.5, 2)
            self.at.eval()

    def forward(self, x):
        return self.at(self.start(x))


for kind in ("batchnorm", "syncbatchnorm"):
    for options, affine, frozen in (("affine: false", False, False),
                                    ("frozen: true", True, True),
                                    ("affine: false, frozen: true", False,
                                     True)):
        CASES.append((
            f"{kind}, {options}", [3, 4, 2],
            "- {name: start, position: }\n"
            f"- {{name: at, {kind}: {{{options}}}}}", 0,
            lambda affine=affine, frozen=frozen: Norm(affine, frozen)))


class Two(nn.Module):
    """A function of two learnt tensors, each with the input added to it or
    not; [shapes] are those of a sample, of which the first is the input's."""

    def __init__(self, first, second, function):
        super().__init__()
        self.a, self.b = Position(*first), Position(*second)
        self.function = function

    def forward(self, x):
        return self.function(self.a(x), self.b(self.narrow(x)))

    @staticmethod
    def narrow(x):
        return x


def two(name, layer, first, second, narrow, function):
    """A case of one layer of two inputs: a is the input with a position, b
    what the layers [narrow] make of the input, with another."""
    layers, make = narrow

    class Made(Two):
        narrow = staticmethod(make)
    CASES.append((
        name, list(first),
        "- {name: a, position: , from: input}\n" + layers +
        "- {name: b, position: }\n"
        f"- {{{layer}, from: [a, b]}}", 0,
        lambda: Made(first, second, function)))


means = ("- {mean: {axes: [2, 3]}, from: input}\n- reshape: {shape: [-1, 1, "
         "1]}\n", lambda x: x.mean((2, 3), keepdim=True))
row = ("- {slice: {axis: 1, size: 1}, from: input}\n"
       "- slice: {axis: 2, size: 1}\n- reshape: {shape: [-1]}\n",
       lambda x: x[:, 0, 0])
two("add, broadcast over space", "add: ", (3, 4, 5), (3, 1, 1), means,
    lambda a, b: a + b)
two("mul, broadcast over space", "mul: ", (3, 4, 5), (3, 1, 1), means,
    lambda a, b: a * b)
two("mul, broadcast over all but the last", "mul: ", (3, 4, 5), (5,), row,
    lambda a, b: a * b[:, None, None])
same = ("- {scale: {by: 1}, from: input}\n", lambda x: x)
sides = ("- {permute: {order: [2, 1]}, from: input}\n",
         lambda x: x.transpose(1, 2))
two("add, outer sum", "add: ", (6, 1), (1, 6), sides, lambda a, b: a + b)
two("matmul", "matmul: ", (4, 3), (3, 4), sides, lambda a, b: a @ b)
two("matmul, first turned", "matmul: {transpose_a: true}", (4, 3), (4, 3),
    same, lambda a, b: a.transpose(-1, -2) @ b)
two("matmul, second turned, of heads", "matmul: {transpose_b: true}",
    (2, 4, 3), (2, 4, 3), same, lambda a, b: a @ b.transpose(-1, -2))
two("matmul, both turned", "matmul: {transpose_a: true, transpose_b: true}",
    (4, 3), (3, 4), sides,
    lambda a, b: a.transpose(-1, -2) @ b.transpose(-1, -2))


class Cross(nn.Module):
    """2 heads of queries that share keys and values of other tokens."""

    def __init__(self, lengths):
        super().__init__()
        self.q, self.kv = nn.Linear(5, 8), nn.Linear(3, 8)
        self.lengths = lengths

    def forward(self, x):
        # The sample: 4 tokens of 5 features, 6 of 3; then 6 numbers, the mask.
        q = self.q(x[:, :20].unflatten(1, (4, 5)))
        k, v = self.kv(x[:, 20:38].unflatten(1, (6, 3))).split(4, -1)
        q = q.unflatten(-1, (2, 4)).transpose(1, 2)
        seen = x[:, 38:44] > 0 if not self.lengths \
            else torch.arange(6) < x[:, 44:45]
        y = nn.functional.scaled_dot_product_attention(
            q, k[:, None].expand(-1, 2, -1, -1),
            v[:, None].expand(-1, 2, -1, -1), attn_mask=seen[:, None, None])
        return y.transpose(1, 2).flatten(-2)


def cross(name, start, size, lengths):
    """A case with [size] numbers from [start] on as mask."""
    CASES.append((name, [45], f"""
- {{name: some, slice: {{start: 0, size: 20}}, from: input}}
- {{name: tokens, reshape: {{shape: [4, 5]}}}}
- {{name: q, linear: {{out: 8, flatten: false}}}}
- {{name: others, slice: {{start: 20, size: 18}}, from: input}}
- {{name: memory, reshape: {{shape: [6, 3]}}}}
- {{name: kv, linear: {{out: 8, flatten: false}}}}
- {{name: mask, slice: {{start: {start}, size: {size}}}, from: input}}
- {{attention: {{heads: 2, kv_heads: 1, mask: true}}, from: [q, kv, mask]}}
""", 0, lambda: Cross(lengths)))


cross("cross-attention, mask", 38, 6, False)
cross("cross-attention, lengths", 44, 1, True)


def with_masks(x):
    """Make of the last 7 numbers of these samples a mask and a length."""
    if x.shape[1:] == (45,):
        x[:, 38:44] = torch.tensor([[1., 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 0],
                                    [0, 0, 0, 1, 1, 1]])
        x[:, 44] = torch.tensor([6., 1, 4])
    return x

for at, (shape, kernel, stride, pad) in enumerate((
        ((2, 6, 8), (3, 3), (2, 2), (0, 0)),
        ((2, 6, 5), (3, 2), (2, 2), (1, 1)),
        ((2, 5, 7), (2, 2), (2, 2), (0, 0)),
        ((2, 5), (2,), (3,), (1,)),
        ((2, 7), (3,), (3,), (1,)),
        ((2, 4, 3, 5), (3, 2, 2), (2, 2, 3), (1, 0, 1)))):
    options = (f"kernel: {list(kernel)}, stride: {list(stride)}, "
               f"pad: {list(pad)}, ceil_mode: true")
    dims = len(shape) - 1
    through(f"maxpool, ceil {at + 1}", list(shape), f"maxpool: {{{options}}}",
            lambda x, f=getattr(F, f"max_pool{dims}d"), k=kernel, s=stride,
            p=pad: f(x, k, s, p, ceil_mode=True))
    for count in (True, False):
        through(
            f"avgpool, ceil {at + 1}, pad {'' if count else 'not '}counted",
            list(shape),
            f"avgpool: {{{options}, count_pad: {str(count).lower()}}}",
            lambda x, f=getattr(F, f"avg_pool{dims}d"), k=kernel, s=stride,
            p=pad, count=count: f(x, k, s, p, True, count))

# Enough numbers that some are beyond -3 and 3.
through("hardswish", [40, 5], "hardswish", F.hardswish)


def label(key):
    """cddp's name of a parameter: a recurrent module has one layer."""
    return key.removesuffix("_l0")


def numbers(tensor):
    """Shortest texts that give the same float32, or all digits that count."""
    if not tensor.dtype.is_floating_point:
        return tensor.flatten().tolist()
    return [float(f"{v:.9g}") for v in tensor.detach().flatten().tolist()]


def run(name, shape, layers, tokens, make):
    module = make()
    x = torch.randint(tokens, (BATCH, *shape)) if tokens \
        else with_masks(torch.randn(BATCH, *shape))
    target = torch.randn(module(x).shape)
    params = {label(key): numbers(value)
              for key, value in module.named_parameters()}
    # Copied, as a forward may change them.
    buffers = {key: numbers(value.clone())
               for key, value in module.named_buffers()
               if value.dtype.is_floating_point
               and not all(m.training for m in module.modules())}
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
        "params": params, **({"buffers": buffers} if buffers else {}),
        "output": numbers(out), "loss": loss.item(),
        "grads": {label(key): numbers(value.grad)
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
