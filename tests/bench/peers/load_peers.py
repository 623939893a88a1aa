# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Compares our loader with PyTorch's DataLoader over h5py.

Started by load-peers. Both read the same file (samples of 4096 float32 and a class,
contiguous or in gzip chunks of 64 samples), the same samples in the same batches: the
order is that of our loader with shuffle "chunk". A pair is an epoch of each loader; which
loader comes first changes from pair to pair. The page cache has the file.

The peer is tuned: two worker processes serve all epochs and read a batch in one call
(sorted rows, one selection), with a chunk cache of HDF5 that holds the whole file. Each
epoch opens the file anew, as our loader does, so that nothing is decoded before. Our
loader is libcddp. It is measured with one thread that reads ahead, then with two such
threads, or with the numbers of threads of --threads. The times of both loaders include
opening the file. A ratio is the peer's time over ours: above 1, we are faster. In each
pair, both loaders must get the same sum over some numbers of every batch. Prints CSV.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import torch

HERE = pathlib.Path(__file__).parent
ELEMS, BATCH, CHUNK = 4096, 256, 64
CACHE = 1 << 30


def file_write(path, layout, rows):
    """Whole numbers from 0 to 255 that look random: gzip makes them three times smaller."""
    random = np.random.default_rng(7)
    how = {} if layout == "contiguous" else dict(
        chunks=(CHUNK, ELEMS), compression="gzip", compression_opts=4, shuffle=True)
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (rows, ELEMS), "f4", **how)
        for first in range(0, rows, CHUNK):
            last = min(first + CHUNK, rows)
            x[first:last] = random.integers(0, 256, (last - first, ELEMS))
        file["y"] = np.arange(rows, dtype="i4")


class Samples(torch.utils.data.Dataset):
    """A batch is a list of (epoch, sample)."""

    def __init__(self, path):
        self.path, self.epoch, self.file = path, None, None

    def __getitems__(self, batch):
        if self.epoch != batch[0][0]:
            if self.file is not None:
                self.file.close()
            self.file = h5py.File(self.path, "r", rdcc_nbytes=CACHE, rdcc_nslots=100003)
            self.x, self.y = self.file["x"], self.file["y"]
            self.epoch = batch[0][0]
        ids = np.array([sample for _, sample in batch])
        rows = np.argsort(ids)
        x = np.empty((len(ids), ELEMS), "f4")
        y = np.empty(len(ids), "i8")
        x[rows] = self.x[ids[rows]]
        y[rows] = self.y[ids[rows]]
        return torch.from_numpy(x), torch.from_numpy(y)


class Batches:
    """The batches of one epoch after the other, for a DataLoader that serves all epochs."""

    def __init__(self, ids):
        self.ids, self.epoch = ids, 0

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        self.epoch += 1
        return iter([[(self.epoch, sample) for sample in batch] for batch in self.ids])


def same(batch):
    return batch


class Ours:
    def __init__(self, path, threads):
        library = os.path.join(os.environ["BUILD"], ".libs", "libcddp.so")
        self.process = subprocess.Popen(
            [sys.executable, HERE / "load_ours.py", library, path, str(ELEMS), str(BATCH),
             str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit("load-peers: our side has ended")
        return answer

    def order(self, path):
        self.ask(f"ids {path}")
        with open(path) as file:
            return [[int(word) for word in line.split()] for line in file]

    def epoch(self):
        seconds, total, _ = self.ask("epoch")
        return float(seconds), float(total)

    def close(self):
        # The workers have the pipe open, too, so closing it here would end nothing.
        print("end", file=self.process.stdin, flush=True)
        self.process.wait()


def peer_epoch(loader):
    start, total = time.perf_counter(), 0.0
    for x, y in loader:
        total += float(x[0, 0]) + int(y[-1])
    return time.perf_counter() - start, total


def layout_measure(path, layout, threads, args):
    rows = args.mib * (1 << 20) // (4 * ELEMS)
    ours = Ours(path, threads)
    ids = ours.order(path + ".ids")
    if sorted(i for batch in ids for i in batch) != list(range(rows)):
        sys.exit("load-peers: our order is no permutation")
    loader = torch.utils.data.DataLoader(
        Samples(path), batch_sampler=Batches(ids), collate_fn=same,
        num_workers=args.workers, persistent_workers=True, prefetch_factor=4)
    pairs = []
    for i in range(args.pairs + 1):
        turn = {}
        for who in (("ours", "peer") if i % 2 == 0 else ("peer", "ours")):
            turn[who] = ours.epoch() if who == "ours" else peer_epoch(loader)
        if turn["ours"][1] != turn["peer"][1]:
            sys.exit(f"load-peers: {layout}: other samples: {turn}")
        if i > 0:  # the first pair warms up
            pairs.append((turn["ours"][0], turn["peer"][0]))
    ours.close()
    ratios = sorted(peer / our for our, peer in pairs)
    rates = [args.mib * 1.048576 / sorted(pair[k] for pair in pairs)[len(pairs) // 2]
             for k in (0, 1)]
    print(f"{layout},{args.mib},{threads},{args.workers},{len(pairs)},"
          f"{rates[0]:.0f},{rates[1]:.0f},"
          f"{ratios[len(ratios) // 2]:.2f},{ratios[0]:.2f},{ratios[-1]:.2f},"
          f"{os.getloadavg()[0]:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="load-peers")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--mib", type=int, default=96, help="MiB of samples")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", default="1,2", help="threads of our loader")
    parser.add_argument("layouts", nargs="*", default=["contiguous", "gzip"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("layout,MiB,threads,workers,pairs,ours_MB_s,peer_MB_s,ratio,lowest,highest,load")
    with tempfile.TemporaryDirectory() as folder:
        for layout in args.layouts or ["contiguous", "gzip"]:
            path = os.path.join(folder, layout + ".h5")
            file_write(path, layout, args.mib * (1 << 20) // (4 * ELEMS))
            for threads in map(int, args.threads.split(",")):
                layout_measure(path, layout, threads, args)
            os.unlink(path)


if __name__ == "__main__":
    main()
