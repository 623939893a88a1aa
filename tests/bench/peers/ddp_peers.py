# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""DP or DDP: what a step takes and holds with N ranks of one node.

Started by ddp-peers. Three ways to have N ranks, one thread each:
  local  `cddp-bench step --local N`: threads of one process;
  srun   `srun -n N cddp-bench step`: processes of a Slurm step;
  torch  N processes with DistributedDataParallel over Gloo.
With --scaling weak (the default) every rank has the batch of the run file, with
strong all share it. torch must first come to the losses of one rank of ours
with the same initial weights and the same global batch, and its replicas must
end with the same bits, else nothing is printed. Each round starts every way
once, in an order that changes from round to round; a figure is the median of
the rounds' median steps, a ratio is torch's time over ours, `low` the lower end
of its 95 % interval. Memory is the sum of the ranks' peak RSS (pages that
processes share, libraries and our gradients, count once a process). Prints CSV;
`over` marks rows with more ranks than cores.
"""
import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import step_peers as steps

DEFAULT_CASES = ("mlp-64", "cosmoflow", "gpt")
WAYS = ("local", "srun", "torch")
WARM_UP, TIMED = 3, 12
COLUMNS = ("case,scaling,ranks,over,rounds,local_ms,srun_ms,torch_ms,"
           "torch_by_local,low,torch_by_srun,low,local_MB,srun_MB,torch_MB")


def our_step(case, batch, *options):
    return steps.our_command(case, "fp32", 1, "--set", f"train.batch={batch}",
                             *options)


def read_row(command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                         text=True).stdout.splitlines()
    row = dict(zip(out[0].split(","), out[1].split(",")))
    return float(row["median_ms"]), float(row["rss_MB"])


# ---- the three ways ------------------------------------------------------------

def run_local(case, ranks, batch, _record):
    return read_row(our_step(case, batch, "--csv", "--steps", str(TIMED),
                             "--warm-up", str(WARM_UP), "--local", str(ranks)))


def run_srun(case, ranks, batch, _record):
    srun = ["srun", "-N1", f"-n{ranks}", "--overcommit", "--mpi=pmix"]
    return read_row(srun + our_step(case, batch, "--csv", "--steps", str(TIMED),
                                    "--warm-up", str(WARM_UP)))


def run_torch(case, ranks, _batch, record):
    with tempfile.TemporaryDirectory() as folder:
        workers = [subprocess.Popen(
            [sys.executable, __file__, "--worker", f"{rank}/{ranks}",
             "--record", str(record), "--store", f"{folder}/store", case],
            stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
        rows = [w.communicate()[0].split() for w in workers]
    if any(w.returncode != 0 for w in workers):
        sys.exit(f"ddp-peers: {case}: torch on {ranks} ranks failed")
    return (max(float(r[0]) for r in rows), sum(float(r[1]) for r in rows))


RUN = {"local": run_local, "srun": run_srun, "torch": run_torch}


# ---- a rank of torch's ---------------------------------------------------------

def rank_of(record, rank, ranks):
    """The record with this rank's part of the samples."""
    part = dict(record)
    for key in ("input", "target"):
        count = len(record[key]) // ranks
        part[key] = record[key][rank * count:(rank + 1) * count]
    return part


def all_mean(value, ranks):
    import torch.distributed as dist
    total = value.detach().double()
    dist.all_reduce(total)
    return total.item() / ranks


def check(case, peer, losses, ranks):
    for i, ours in enumerate(losses[:steps.CHECKED]):
        theirs = all_mean(peer.step(), ranks)
        if not math.isclose(ours, theirs, rel_tol=steps.TOLERANCE["fp32"]):
            raise SystemExit(f"ddp-peers: {case}: loss of step {i + 1} is "
                             f"{ours}, torch's {theirs}")


def check_replicas(case, model):
    import torch
    import torch.distributed as dist
    for name, parameter in model.named_parameters():
        root = parameter.detach().clone()
        dist.broadcast(root, 0)
        if not torch.equal(root, parameter):
            raise SystemExit(f"ddp-peers: {case}: {name} differs over ranks")


def peak_rss():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024e-6
    raise SystemExit("ddp-peers: no VmHWM in /proc/self/status")


def worker(args):
    import torch
    import torch.distributed as dist
    rank, ranks = (int(part) for part in args.worker.split("/"))
    case = args.cases[0]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + args.store,
                            rank=rank, world_size=ranks)
    record = steps.read_record(args.record)
    peer = steps.Peer(steps.CASES_ALL[case][0], rank_of(record, rank, ranks),
                      "fp32", False, case in steps.CONVOLUTIONS,
                      torch.nn.parallel.DistributedDataParallel)
    check(case, peer, record["losses"].tolist(), ranks)
    times = []
    for i in range(WARM_UP + TIMED):
        begin = time.perf_counter()
        peer.step()
        times.append(time.perf_counter() - begin)
    check_replicas(case, peer.model)
    print(steps.median(times[WARM_UP:]) * 1e3, peak_rss())
    dist.destroy_process_group()


# ---- the comparison ------------------------------------------------------------

def ways_here():
    """Without a Slurm to start tasks with, that column stays empty."""
    try:
        subprocess.run(["srun", "-n1", "true"], check=True, timeout=60,
                       stderr=subprocess.DEVNULL)
        return WAYS
    except (OSError, subprocess.SubprocessError):
        print("# no Slurm here (slurm/devcluster exec): srun is left out",
              file=sys.stderr)
        return tuple(way for way in WAYS if way != "srun")


def compare(case, ranks, args, ways):
    batch = steps.CASES_ALL[case][1] * (ranks if args.scaling == "weak" else 1)
    found = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        subprocess.run(our_step(case, batch, "--record", str(record), "--csv",
                                "--steps", "1", "--warm-up", "0"),
                       check=True, stdout=subprocess.DEVNULL)
        for i in range(args.rounds):
            shift = i % len(ways)
            for way in ways[shift:] + ways[:shift]:
                found[way].append(RUN[way](case, ranks, batch, record))
    print_row(case, ranks, args, found)


def middle(rows, column):
    return f"{steps.median([row[column] for row in rows]):.2f}" if rows else ""


def ratios(found, way):
    """The median of torch's time over ours, and its lower end."""
    if way not in found:
        return ","
    pairs = [t[0] / o[0] for t, o in zip(found["torch"], found[way])]
    return f"{steps.median(pairs):.2f},{steps.low_of(pairs):.2f}"


def print_row(case, ranks, args, found):
    over = "over" if ranks > len(os.sched_getaffinity(0)) else ""
    columns = [middle(found.get(way), c) for c in (0, 1) for way in WAYS]
    print(",".join([case, args.scaling, str(ranks), over, str(args.rounds),
                    *columns[:3], ratios(found, "local"),
                    ratios(found, "srun"), *columns[3:]]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--scaling", choices=("weak", "strong"), default="weak")
    parser.add_argument("--worker")
    parser.add_argument("--record")
    parser.add_argument("--store")
    parser.add_argument("cases", nargs="*", default=list(DEFAULT_CASES))
    args = parser.parse_args()
    if args.worker:
        worker(args)
        return
    ways = ways_here()
    print(COLUMNS)
    for case in args.cases or DEFAULT_CASES:
        for ranks in args.ranks.split(","):
            compare(case, int(ranks), args, ways)


if __name__ == "__main__":
    main()
