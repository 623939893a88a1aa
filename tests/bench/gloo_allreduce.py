# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""usage: gloo_allreduce.py RANKS SMALLEST LARGEST      (bytes)

torch.distributed.all_reduce over Gloo, measured as cddp-bench allreduce measures
ours: in place, every rank writes its buffer before each call, a barrier, the
slowest rank's time. Prints "bytes,median_us" per size. Started by
allreduce-peers.
"""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WARM_UP = 3


def measure(data, rank):
    rounds = max(7, min(200, (128 << 20) // (data.numel() * 4)))
    times = torch.zeros(rounds, dtype=torch.float64)
    for i in range(WARM_UP + rounds):
        data.fill_(float(rank + i % 7))
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(data)
        if i >= WARM_UP:
            times[i - WARM_UP] = time.perf_counter() - begin
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return float(times.quantile(0.5))


def main(rank, ranks, smallest, largest, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank,
                            world_size=ranks)
    bytes_ = smallest
    while bytes_ > 0:
        median = measure(torch.zeros(bytes_ // 4), rank)
        if rank == 0:
            print(f"{bytes_},{median * 1e6:.3f}", flush=True)
        if bytes_ >= largest:
            break
        bytes_ = min(bytes_ * 4, largest)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks, smallest, largest = (int(a) for a in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(main, (ranks, smallest, largest,
                        os.path.join(scratch, "store")), nprocs=ranks)
