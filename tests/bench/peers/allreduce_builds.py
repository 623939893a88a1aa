#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""The all-reduce of two builds of cddp beside each other, on the same cores.

    tests/bench/peers/allreduce_builds.py [--pairs N] [--ranks N] [--nodes N]
                                          [--sizes SMALLEST:LARGEST] BUILD OTHER

Each pair runs both builds once, in turns, so that other load of the machine
affects both. cddp-bench checks the sums before it takes times. `ratio` is the
median over the pairs of (BUILD's median time / OTHER's of that pair): above 1,
OTHER is faster; `low` and `high` are the ends of the 95 % interval of its median.

Without --nodes the ranks are started by mpirun; with it by srun, inside
slurm/devcluster exec. Where ranks outnumber cores, each core gets equally many.
Prints CSV.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("BUILD", ".")
from step_peers import low_of, median  # noqa: E402 (reads BUILD)


def launcher(ranks, nodes):
    """The command that starts the ranks."""
    cores = len(os.sched_getaffinity(0))
    if nodes:
        return ["srun", "-N", str(nodes), "-n", str(ranks),
                "--ntasks-per-node", str(ranks // nodes), "--mpi=pmix"]
    command = ["mpirun", "-n", str(ranks), "--oversubscribe"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    if ranks > cores:
        command += ["--map-by", "core", "--bind-to", "core:overload-allowed"]
    return command


def times_of(command):
    """Median microseconds by size, as a dictionary."""
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = list(csv.reader(out.stdout.splitlines()))
    size, time = rows[0].index("bytes"), rows[0].index("median_us")
    return {int(row[size]): float(row[time]) for row in rows[1:]}


def compare(args, memory):
    extra = ["--plain"] if memory == "plain" else []
    if args.ranks > len(os.sched_getaffinity(0)):
        extra += ["--rounds", "100"]  # a call may have to wait for its turn
    commands = [launcher(args.ranks, args.nodes)
                + [str(build.resolve() / "cddp-bench"), "allreduce", "--csv",
                   "--sizes", args.sizes, *extra] for build in args.builds]
    pairs = []
    for i in range(args.pairs):
        took = {side: times_of(commands[side])
                for side in ((0, 1) if i % 2 else (1, 0))}
        pairs.append((took[0], took[1]))
    for size in pairs[0][0]:
        ratios = [a[size] / b[size] for a, b in pairs]
        us = [median([pair[side][size] for pair in pairs])
              for side in (0, 1)]
        print(f"{memory},{size},{args.ranks},{args.nodes or 1},{args.pairs},"
              f"{us[0]:.2f},{us[1]:.2f},{median(ratios):.3f},"
              f"{low_of(ratios):.3f},{1 / low_of([1 / r for r in ratios]):.3f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--sizes", default="4:16777216")
    parser.add_argument("builds", nargs=2, type=pathlib.Path)
    args = parser.parse_args()
    if args.nodes and args.ranks % args.nodes != 0:
        sys.exit(f"allreduce_builds: --ranks: expected a multiple of "
                 f"{args.nodes} nodes, found {args.ranks}")
    print("memory,bytes,ranks,nodes,pairs,build_us,other_us,ratio,low,high")
    for memory in ("arena", "plain"):
        compare(args, memory)


if __name__ == "__main__":
    main()
