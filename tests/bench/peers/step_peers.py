# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Our training steps beside PyTorch's: same model, weights, samples, optimizer.

Started by step-peers. For each case: `cddp-bench step --record` writes our
initial weights, samples and first losses; the PyTorch model starts from them
and must come to the same losses, else nothing is timed. Then both are timed in
pairs, in turns in one run: `cddp-bench step --paced` waits while PyTorch works,
and the other way round; who begins changes from pair to pair. A round is one
step ahead of the clock (none where a step takes long) and then as many steps as
take about 60 ms.

The peer is PyTorch eager or compiled, channels first or last, whichever was the
fastest in a trial here; its optimizers are the fused ones. A ratio is PyTorch's
time over ours: above 1, we are faster. `low` is the lower end of the 95 %
confidence interval of the median ratio (from order statistics, so that a
disturbed round counts like any other). Peak memory and the time from the start
of the process to the end of the first step are those of fresh processes.
Prints CSV.
"""
import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
BENCH = os.path.join(os.environ["BUILD"], "cddp-bench")
CASES = {"mlp-64": ("mlp", 64), "mlp-512": ("mlp", 512),
         "resnet18": ("resnet18", 32), "cosmoflow": ("cosmoflow", 4),
         "gpt": ("gpt", 8)}
LARGE = {"gpt2": ("gpt2", 1)}  # only when asked for
CASES_ALL = {**CASES, **LARGE}
CONVOLUTIONS = ("resnet18", "cosmoflow")  # channels last may be faster
TOLERANCE = {"fp32": 1e-3, "bf16": 3e-2}
CHECKED = 3  # losses: later ones have grown apart by rounding alone
ROUND_SECONDS = 0.06
COLUMNS = ("case,precision,threads,pairs,peer,ours_ms,peer_ms,ratio,low,"
           "gflops,peak_gflops,bound_ms,limit,ours_rss_MB,peer_rss_MB,"
           "ours_extra_MB,peer_extra_MB,ours_first_s,peer_first_s")


# ---- models: module names are cddp's parameter names ------------------------

def models():
    """Classes, made late: torch is imported when its start is timed."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1 = nn.Linear(784, 512)
            self.linear2 = nn.Linear(512, 512)
            self.linear3 = nn.Linear(512, 10)

        def forward(self, x):
            x = F.relu(self.linear1(x))
            return self.linear3(F.relu(self.linear2(x)))

    class Resnet18(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem_conv = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            self.stem_bn = nn.BatchNorm2d(64)
            before = 64
            for s in range(1, 5):
                for b in range(1, 3):
                    out = 64 << (s - 1)
                    self.add_block(f"s{s}b{b}", before, out,
                                   2 if s > 1 and b == 1 else 1)
                    before = out
            self.head = nn.Linear(512, 10)

        def add_block(self, name, before, out, stride):
            def conv(kind, inputs, kernel, step):
                self.add_module(f"{name}_{kind}", nn.Conv2d(
                    inputs, out, kernel, step, kernel // 2, bias=False))
            conv("conv1", before, 3, stride)
            conv("conv2", out, 3, 1)
            for i in (1, 2):
                self.add_module(f"{name}_bn{i}", nn.BatchNorm2d(out))
            if before != out:
                conv("down", before, 1, stride)
                self.add_module(f"{name}_downbn", nn.BatchNorm2d(out))

        def block(self, name, x):
            def part(kind):
                return getattr(self, f"{name}_{kind}")
            y = F.relu(part("bn1")(part("conv1")(x)))
            y = part("bn2")(part("conv2")(y))
            if hasattr(self, f"{name}_down"):
                x = part("downbn")(part("down")(x))
            return F.relu(y + x)

        def forward(self, x):
            x = F.relu(self.stem_bn(self.stem_conv(x)))
            for s in range(1, 5):
                for b in range(1, 3):
                    x = self.block(f"s{s}b{b}", x)
            return self.head(x.mean((2, 3)))

    class Cosmoflow(nn.Module):
        def __init__(self):
            super().__init__()
            before = 4
            for i in range(5):
                self.add_module(f"conv{i + 1}",
                                nn.Conv3d(before, 32 << i, 2, padding=1))
                before = 32 << i
            self.linear1 = nn.Linear(512, 128)
            self.linear2 = nn.Linear(128, 64)
            self.head = nn.Linear(64, 4)

        def forward(self, x):
            for i in range(5):
                x = F.leaky_relu(getattr(self, f"conv{i + 1}")(x), 0.3)
                x = F.max_pool3d(x, 2)
            x = F.leaky_relu(self.linear1(x.flatten(1)), 0.3)
            x = F.leaky_relu(self.linear2(x), 0.3)
            return 1.2 * torch.tanh(self.head(x))

    class Gpt(nn.Module):
        def __init__(self, vocabulary, tokens, width, depth, heads):
            super().__init__()
            self.depth, self.heads = depth, heads
            self.tokens = nn.Embedding(vocabulary, width)
            self.start = nn.Embedding(tokens, width)
            for i in range(1, depth + 1):
                self.add_module(f"layernorm{2 * i - 1}", nn.LayerNorm(width))
                self.add_module(f"layernorm{2 * i}", nn.LayerNorm(width))
                for name, inputs, out in (("attention_in", 1, 3),
                                          ("attention_out", 1, 1),
                                          ("mlp_in", 1, 4), ("mlp_out", 4, 1)):
                    self.add_module(f"b{i}_{name}",
                                    nn.Linear(inputs * width, out * width))
            self.norm = nn.LayerNorm(width)

        def block(self, i, x):
            n, t, w = x.shape
            y = getattr(self, f"layernorm{2 * i - 1}")(x)
            q, k, v = getattr(self, f"b{i}_attention_in")(y).view(
                n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            y = y.transpose(1, 2).reshape(n, t, w)
            x = x + getattr(self, f"b{i}_attention_out")(y)
            y = getattr(self, f"layernorm{2 * i}")(x)
            y = F.gelu(getattr(self, f"b{i}_mlp_in")(y), approximate="tanh")
            return x + getattr(self, f"b{i}_mlp_out")(y)

        def forward(self, x):
            x = self.tokens(x) + self.start.weight
            for i in range(1, self.depth + 1):
                x = self.block(i, x)
            return F.linear(self.norm(x), self.tokens.weight).flatten(0, 1)

    def gpt():
        return Gpt(256, 128, 256, 4, 4)

    def gpt2():
        return Gpt(50257, 256, 768, 12, 12)

    return {"mlp": Mlp, "resnet18": Resnet18, "cosmoflow": Cosmoflow,
            "gpt": gpt, "gpt2": gpt2}


def make_optimizer(name, parameters):
    import torch
    if name in ("mlp", "gpt", "gpt2"):
        return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01,
                                 fused=True)
    if name == "resnet18":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9,
                               weight_decay=5e-4, fused=True)
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=True)


class Peer:
    """A PyTorch model that makes steps from a record; [wrap] may put another
    module around it."""

    def __init__(self, name, record, precision, compiled, last, wrap=None):
        import torch
        model = models()[name]()
        if record is not None:
            missing, _ = model.load_state_dict(record, strict=False)
            missing = [k for k in missing if "num_batches" not in k]
            assert not missing, missing
        x, target = record["input"].clone(), record["target"]
        if last:
            layout = torch.channels_last if x.dim() == 4 \
                else torch.channels_last_3d
            model = model.to(memory_format=layout)
            x = x.contiguous(memory_format=layout)
        if wrap is not None:
            model = wrap(model)
        self.model = model
        self.optimizer = make_optimizer(name, model.parameters())
        self.bf16 = precision == "bf16"
        self.target = target.flatten() if target.dtype == torch.int64 \
            else target
        loss_of = torch.nn.functional.cross_entropy \
            if target.dtype == torch.int64 else torch.nn.functional.mse_loss
        self.x = x

        def forward(x, target):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                y = model(x)
            return loss_of(y.float(), target)
        self.forward = torch.compile(forward) if compiled else forward

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward(self.x, self.target)
        loss.backward()
        self.optimizer.step()
        return loss

    def round(self, steps, warm):
        for _ in range(warm):
            self.step()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - begin) / steps


# ---- ours --------------------------------------------------------------------

def our_command(case, precision, threads, *options):
    name, batch = CASES_ALL[case]
    command = [BENCH, "step", "--set", f"train.threads={threads}", "--set",
               f"train.batch={batch}", *options]
    if precision != "fp32":
        command += ["--set", f"train.precision={precision}"]
    return command + [str(HERE / f"{name}.yaml")]


def read_record(path):
    import torch
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    types = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64,
             "I32": torch.int32}
    found = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        first, last = entry["data_offsets"]
        found[name] = torch.frombuffer(
            bytearray(data[8 + length + first:8 + length + last]),
            dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return found


def warm_up(steps):
    return 0 if steps == 1 else 1


class Ours:
    def __init__(self, case, precision, threads, record, steps):
        self.process = subprocess.Popen(
            our_command(case, precision, threads, "--paced", "--record",
                        str(record), "--steps", str(steps), "--warm-up",
                        str(warm_up(steps))),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def our_row(case, precision, threads):
    """The row of a fresh process: memory, first step, bound."""
    out = subprocess.run(
        our_command(case, precision, threads, "--csv", "--steps", "5",
                    "--warm-up", "1"),
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return dict(zip(out[0].split(","), out[1].split(",")))


# ---- the comparison ----------------------------------------------------------

def check(case, precision, peer, losses):
    """Stop when the losses of the first steps differ."""
    for i, ours in enumerate(losses[:CHECKED]):
        theirs = peer.step().item()
        if not math.isclose(ours, theirs, rel_tol=TOLERANCE[precision],
                            abs_tol=TOLERANCE[precision] / 10):
            raise SystemExit(
                f"step-peers: {case} {precision}: loss of step {i + 1} is "
                f"{ours}, PyTorch's {theirs}")


def try_variant(case, precision, record, compiled, last, best):
    """The faster of [best] and this variant, if it works here and agrees."""
    label = ("compiled" if compiled else "eager") + (" last" if last else "")
    try:
        if compiled:  # else dynamo gives up after the eighth model, unseen
            import torch._dynamo
            torch._dynamo.reset()
        peer = Peer(CASES_ALL[case][0], record, precision, compiled, last)
        check(case, precision, peer, record["losses"].tolist())
    except Exception as error:  # say so: the others are there
        print(f"# {case} {precision}: no {label}: "
              f"{str(error).splitlines()[0]}", file=sys.stderr)
        return best
    took = min(peer.round(1, 0) for _ in range(4))
    print(f"# {case} {precision}: {label} {took * 1e3:.2f} ms",
          file=sys.stderr)
    if best is None or took < best[0]:
        return took, label, peer, last
    return best


def fastest(case, precision, record, eager):
    """The fastest variant of the peer, checked: channels last where that helps,
    then compiled."""
    lasts = (False, True) if case in CONVOLUTIONS else (False,)
    best = None
    for last in lasts:
        best = try_variant(case, precision, record, False, last, best)
    if not eager and best is not None:
        best = try_variant(case, precision, record, True, best[3], best)
    if best is None:
        sys.exit(f"step-peers: {case} {precision}: the peer does not work")
    return best


def low_of(ratios):
    """Lower end of the two-sided 95 % interval of the median."""
    count, total, rank = len(ratios), 0.0, 0
    for k in range(count):
        total += math.comb(count, k) * 0.5 ** count
        if total > 0.025:
            break
        rank = k + 1
    return sorted(ratios)[max(rank - 1, 0)]


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return (values[middle] + values[-middle - 1]) / 2


def peer_first(case, precision, threads, path):
    """Memory and time of a fresh PyTorch process (eager: it starts faster)."""
    begin = time.time()
    out = subprocess.run(
        [sys.executable, __file__, "--first", str(path), "--threads",
         str(threads), "--precision", precision, case],
        check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(out[0]) - begin, float(out[1])


def first_main(args):
    import torch
    torch.set_num_threads(int(args.threads))
    case = args.cases[0]
    peer = Peer(CASES_ALL[case][0], read_record(args.first), args.precision,
                False, False)
    peer.step()
    at = time.time()
    for _ in range(6):
        peer.step()
    # not ru_maxrss, which begins with what the parent process held
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            print(at, int(line.split()[1]) * 1024e-6)


def compare(case, precision, threads, args):
    import torch
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "record"
        row = our_row(case, precision, threads)
        steps = max(1, int(ROUND_SECONDS * 1e3 / float(row["median_ms"])))
        ours = Ours(case, precision, threads, path, steps)
        ours.round()
        record = read_record(path)
        best = fastest(case, precision, record, args.eager)
        pairs = []
        for i in range(args.pairs):
            mine = ours.round() if i % 2 else None
            theirs = best[2].round(steps, warm_up(steps))
            pairs.append((mine or ours.round(), theirs))
        ours.close()
        first, rss = peer_first(case, precision, threads, path)
    ratios = [theirs / mine for mine, theirs in pairs]
    mine = median([p[0] for p in pairs])
    planned = float(row["state_MB"]) + float(row["activation_MB"])
    gflops = float(row["gflops"]) * float(row["median_ms"]) / (mine * 1e3)
    print(f"{case},{precision},{threads},{len(pairs)},{best[1]},"
          f"{mine * 1e3:.3f},{median([p[1] for p in pairs]) * 1e3:.3f},"
          f"{median(ratios):.3f},{low_of(ratios):.3f},{gflops:.1f},"
          f"{row['peak_gflops']},{row['bound_ms']},{row['limit']},"
          f"{row['rss_MB']},{rss:.1f},{float(row['rss_MB']) - planned:.1f},"
          f"{rss - planned:.1f},{row['first_step_s']},{first:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--first")
    parser.add_argument("cases", nargs="*", default=list(CASES))
    args = parser.parse_args()
    if args.first:
        first_main(args)
        return
    print(COLUMNS)
    for case in args.cases or CASES:
        for precision in args.precision.split(","):
            for threads in args.threads.split(","):
                compare(case, precision, int(threads), args)


if __name__ == "__main__":
    main()
