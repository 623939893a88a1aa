#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""What a save behind training costs: compares whole runs of cddp-train.

    BUILD=build tests/bench/peers/save_cost.py [--rounds N] [--every K]
        [--threads T] [DIR]

One rank with T compute threads trains an MLP with AdamW and saves every K steps, to a
directory in DIR. If T is less than the number of cores, the thread of a save has a core
of its own. In each round, a run with `checkpoint.async: true`, one with `false`, and
one without saves follow each other; the order changes from round to round. All three
must end with the same loss. Two times of the run with `true` are compared with limits
of the same round:

- `added`: the time of the steps from the beginning of a save to its end, minus the time
  of as many steps of the same run during which nothing is saved. Limit: 1.2 times
  `copy`, the time in which memcpy copies the bytes of a save to memory that was written
  before.
- `exposed`: the time in which no step was made because of the save (rows `checkpoint` of
  metrics.jsonl). Limit: 5 % of `sync`, the time of a save of the run with `false`.

Each number is the median of all saves. The first save of each run is left out, because
it allocates its buffer. Times are in ms. Prints CSV.
"""
import argparse
import ctypes
import os
import shutil
import sys
import tempfile
import time

os.environ.setdefault("BUILD", ".")
import step_peers as peers  # noqa: E402 (reads BUILD)
import train_runs as runs  # noqa: E402 (reads BUILD)

RUN = """
run: {name: saves, seed: 1}
data: {train: "DATA/train-*.h5", input: {path: /spins}, target: {path: /phase}}
model: {preset: mlp, input: [1, 32, 32], classes: 2, hidden: [4096, 2048]}
loss: cross_entropy
optimizer: {adamw: {lr: 1.0e-3}}
train: {epochs: 1, batch: 64, threads: THREADS}
"""
KINDS = {"true": ["checkpoint.async=true"], "false": ["checkpoint.async=false"],
         "none": []}


def train(folder, name, settings):
    """Rows of metrics.jsonl: those of steps, and those of checkpoints."""
    runs.train(folder, name, settings)
    steps, events = runs.rows_of(folder, name)
    shutil.rmtree(os.path.join(folder, name))
    return steps, [row for row in events if row["event"] == "checkpoint"]


def added_times(steps, saves):
    """Seconds of a step during which nothing is saved, and, for each save but the
    first one, the seconds by which it made the steps during it longer."""
    at = {row["step"]: runs.time_of(row) for row in steps}
    spans = []
    for save in saves:
        end = first = save["step"]
        while end + 1 in at and at[end] - at[first] < save["seconds"]:
            end += 1
        spans.append((first, end))
    beside = {s for first, end in spans for s in range(first + 1, end + 1)}
    alone = peers.median([at[s] - at[s - 1] for s in at
                          if s - 1 in at and s - 1 > 5 and s not in beside])
    return alone, [at[end] - at[first] - (end - first) * alone
                   for first, end in spans[1:] if end < max(at)]


def copy_time(count):
    source, target = ctypes.create_string_buffer(count), \
        ctypes.create_string_buffer(count)
    ctypes.memset(source, 1, count)
    times = []
    for _ in range(6):
        begin = time.monotonic()
        ctypes.memmove(target, source, count)
        times.append(time.monotonic() - begin)
    return peers.median(times[1:])


def one_round(folder, args, order):
    """Run all kinds once in this order. Return what was measured, in seconds."""
    every = f"checkpoint.every={args.every} steps"
    found = {}
    for kind in order:
        found[kind] = train(folder, kind, KINDS[kind] + [
            every if kind != "none" else "checkpoint.every=never"])
    losses = {kind: rows[0][-1]["loss"] for kind, rows in found.items()}
    if len(set(losses.values())) != 1:
        sys.exit(f"save_cost: losses differ: {losses}")
    steps, saves = found["true"]
    alone, added = added_times(steps, saves)
    return {"step": [alone], "added": added,
            "exposed": [save["exposed"] for save in saves[1:]],
            "behind": [save["seconds"] for save in saves[1:]],
            "sync": [save["seconds"] for save in found["false"][1][1:]],
            "copy": [copy_time(saves[0]["bytes"])],
            "bytes": saves[0]["bytes"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        runs.prepare(folder, RUN, THREADS=args.threads)
        names = list(KINDS)
        rounds = [one_round(folder, args, names[i % 3:] + names[:i % 3])
                  for i in range(args.rounds)]
    ms = {key: 1e3 * peers.median([x for r in rounds for x in r[key]])
          for key in rounds[0] if key != "bytes"}
    print("threads,saves,MB,step_ms,save_ms,added_ms,copy_ms,added_ratio,limit,"
          "exposed_ms,sync_ms,exposed_ratio,limit")
    print(f"{args.threads},{sum(len(r['exposed']) for r in rounds)},"
          f"{rounds[0]['bytes'] * 1e-6:.1f},{ms['step']:.2f},"
          f"{ms['behind']:.1f},{ms['added']:.1f},{ms['copy']:.1f},"
          f"{ms['added'] / ms['copy']:.2f},1.2,{ms['exposed']:.2f},"
          f"{ms['sync']:.1f},{ms['exposed'] / ms['sync']:.4f},0.05")


if __name__ == "__main__":
    main()
