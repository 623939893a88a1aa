#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""What it costs to observe a run: compares whole runs of cddp-train.

    BUILD=build tests/bench/peers/step_observed.py [--pairs N] [--epochs E]
        [--kinds minute,second,trace]

One rank with one compute thread trains an MLP of about 2 ms a step. `minute` is a run
with TensorBoard's and Prometheus' files and the default of obs.every: it writes a row
of metrics.jsonl each step, and everything else once a minute. `second` writes
everything else each second, sixty times as often. `trace` is `second` with a trace of
all steps. Each kind is compared with a run that writes only the row of its last step.
In each round the runs follow each other; the order changes from round to round. Before
the first round, a run of each kind must reach the same loss. `ms` is the time of a
step, from the end of the first one to the row of the last one: what a run writes after
its last step is not in it. `low` and `high` are the ends of the 95 % interval of the
ratio's median.
Limits: `minute` 1.005, `trace` 1.03; `second` has none. Prints CSV.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("BUILD", ".")
import step_peers as peers  # noqa: E402 (reads BUILD)
import train_runs as runs  # noqa: E402 (reads BUILD)

RUN = """
run: {name: observed, seed: 1}
data: {train: "DATA/train-*.h5", input: {path: /spins}, target: {path: /phase}}
model: {preset: mlp, input: [1, 32, 32], classes: 2, hidden: [512, 512]}
loss: cross_entropy
optimizer: {adamw: {lr: 1.0e-3}}
train: {epochs: EPOCHS, batch: 64, threads: 1}
checkpoint: {every: never}
"""
STEPS = 313  # of an epoch
BARE = ["obs.tensorboard=false", "obs.every=86400 s"]
MINUTE = ["obs.tensorboard=true", "obs.prometheus=prom"]
SECOND = MINUTE + ["obs.every=1 s"]
TRACE = SECOND + ["obs.trace=chrome", "obs.trace_steps=1:1000000"]
KINDS = {"bare": BARE, "minute": MINUTE, "second": SECOND, "trace": TRACE}
LIMITS = {"minute": 1.005, "second": None, "trace": 1.03}


def train(folder, name, settings):
    """Milliseconds of a step, and the loss of the validation data."""
    runs.train(folder, name, settings)
    summary = json.loads(pathlib.Path(folder, name, "summary.json").read_text())
    last = runs.rows_of(folder, name)[0][-1]
    if last["step"] != summary["step"]:
        sys.exit(f"step_observed: {name}: no row of the last step")
    seconds = runs.time_of(last) - summary["first_step_at"]
    return seconds / (last["step"] - 1) * 1e3, summary["loss"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--kinds", default="minute,second,trace")
    args = parser.parse_args()
    names = ["bare"] + args.kinds.split(",")
    if not set(names) <= set(KINDS):
        parser.error(f"--kinds: expected some of {', '.join(LIMITS)}, found "
                     f"{args.kinds}")
    with tempfile.TemporaryDirectory() as folder:
        runs.prepare(folder, RUN, EPOCHS=args.epochs)
        pathlib.Path(folder, "prom").mkdir()
        KINDS["bare"].append(f"train.log_every={STEPS * args.epochs}")
        # This round also warms caches.
        valid = [f"data.valid={folder}/data/valid-*.h5"]
        losses = [train(folder, f"{kind}-loss", KINDS[kind] + valid)[1]
                  for kind in names]
        if len(set(losses)) != 1 or losses[0] is None:
            sys.exit(f"step_observed: losses {losses} of {names}")
        found = {kind: [] for kind in names}
        for i in range(args.pairs):
            first = i % len(names)
            for kind in names[first:] + names[:first]:
                found[kind].append(train(folder, f"{kind}-{i}",
                                         KINDS[kind])[0])
        print("kind,pairs,ms,bare_ms,ratio,low,high,limit")
        for kind in names[1:]:
            ratios = [a / b for a, b in zip(found[kind], found["bare"])]
            print(f"{kind},{args.pairs},{peers.median(found[kind]):.3f},"
                  f"{peers.median(found['bare']):.3f},"
                  f"{peers.median(ratios):.4f},{peers.low_of(ratios):.4f},"
                  f"{1 / peers.low_of([1 / r for r in ratios]):.4f},"
                  f"{LIMITS[kind] or 'none'}")


if __name__ == "__main__":
    main()
