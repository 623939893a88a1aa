#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Training steps of two builds of cddp beside each other, on the same cores.

    tests/bench/peers/step_builds.py [--pairs N] [--processes P] BUILD OTHER
                                     [CASE...]

for builds with different compilers or versions of a library: for each case and
precision the two are timed in turns (see step_peers.py), one thread. Both must
come to the same losses first, to 1e-3 (bf16: 3e-2). `ratio` is BUILD's time over
OTHER's: above 1, OTHER is faster; `low` and `high` are the ends of the 95 %
interval of its median. Prints CSV.

All steps of a process can be 2 to 4 % faster or slower than those of another
process of the same build, as its pages lie elsewhere in memory. With P > 1 processes
of each build, one after another, each pair of processes counts once, by the median
of its N pairs of rounds.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

os.environ.setdefault("BUILD", ".")
import step_peers as peers  # noqa: E402 (reads BUILD)


def losses_of(build, case, precision):
    """The losses of the first steps, as --record has them."""
    peers.BENCH = str(build / "cddp-bench")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "record"
        subprocess.run(peers.our_command(case, precision, 1, "--record",
                                         str(path), "--steps", "1",
                                         "--warm-up", "0"),
                       check=True, stdout=subprocess.DEVNULL)
        data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    first, last = json.loads(data[8:8 + length])["losses"]["data_offsets"]
    raw = data[8 + length + first:8 + length + last]
    return struct.unpack(f"<{len(raw) // 8}d", raw)


def timed(builds, case, precision, pairs):
    """Seconds of a step of both builds: [pairs] of rounds of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for number, build in enumerate(builds):
            peers.BENCH = str(build / "cddp-bench")
            row = peers.our_row(case, precision, 1)
            steps = max(1, int(peers.ROUND_SECONDS * 1e3
                               / float(row["median_ms"])))
            sides.append(peers.Ours(case, precision, 1,
                                    pathlib.Path(folder) / str(number), steps))
            sides[-1].round()
        times = []
        for i in range(pairs):
            order = (0, 1) if i % 2 else (1, 0)
            took = {side: sides[side].round() for side in order}
            times.append((took[0], took[1]))
        for side in sides:
            side.close()
    return times


def compare(builds, case, precision, pairs, processes):
    found = [losses_of(build, case, precision) for build in builds]
    for a, b in list(zip(*found))[:peers.CHECKED]:
        if abs(a - b) > peers.TOLERANCE[precision] * abs(a):
            sys.exit(f"step_builds: {case} {precision}: losses {found[0]} and "
                     f"{found[1]}")
    times, ratios = [], []
    for _ in range(processes):
        more = timed(builds, case, precision, pairs)
        times += more
        of_pairs = [a / b for a, b in more]
        ratios += of_pairs if processes == 1 else [peers.median(of_pairs)]
    medians = [peers.median([pair[side] for pair in times]) * 1e3
               for side in (0, 1)]
    print(f"{case},{precision},{pairs},{processes},{medians[0]:.3f},"
          f"{medians[1]:.3f},{peers.median(ratios):.3f},"
          f"{peers.low_of(ratios):.3f},"
          f"{1 / peers.low_of([1 / r for r in ratios]):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("builds", nargs=2, type=pathlib.Path)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    print("case,precision,pairs,processes,build_ms,other_ms,ratio,low,high")
    for case in args.cases or peers.CASES:
        for precision in args.precision.split(","):
            compare([build.resolve() for build in args.builds], case,
                    precision, args.pairs, args.processes)


if __name__ == "__main__":
    main()
