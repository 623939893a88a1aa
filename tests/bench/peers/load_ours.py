# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Our side of load_peers.py: libcddp, called through ctypes, in a process of its own.

usage: load_ours.py LIBRARY FILE ELEMS BATCH THREADS. Each line on standard input is
one epoch: the data is opened, and all batches are read; THREADS threads read ahead.
The answer is a line "SECONDS SUM SAMPLES". For the line "ids PATH" the numbers of the
samples are written to PATH instead, one line for each batch, and the answer is "done".
The line "end" ends the process.
"""
import ctypes
import sys
import time


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("culprit", ctypes.c_int),
                ("host", ctypes.c_char * 64), ("text", ctypes.c_char * 1024)]


class RunConfig(ctypes.Structure):
    _fields_ = [("local", ctypes.c_int), ("timeout", ctypes.c_double),
                ("backend", ctypes.c_char_p), ("device", ctypes.c_char_p)]


class DataConfig(ctypes.Structure):
    _fields_ = [("files", ctypes.POINTER(ctypes.c_char_p)), ("input", ctypes.c_char_p),
                ("target", ctypes.c_char_p), ("input_elems", ctypes.c_int64),
                ("target_elems", ctypes.c_int64), ("classes", ctypes.c_int64),
                ("tokens", ctypes.c_int64), ("sequence", ctypes.c_int64),
                ("scale", ctypes.c_double), ("shift", ctypes.c_double),
                ("batch", ctypes.c_int64), ("shuffle", ctypes.c_char_p),
                ("seed", ctypes.c_uint64), ("epochs", ctypes.c_int64),
                ("epoch", ctypes.c_int64), ("step", ctypes.c_int64),
                ("prefetch", ctypes.c_int), ("inputs", ctypes.c_void_p),
                ("targets", ctypes.c_void_p), ("input_count", ctypes.c_int),
                ("target_count", ctypes.c_int), ("validate", ctypes.c_char_p),
                ("input_options", ctypes.c_char_p), ("target_options", ctypes.c_char_p),
                ("samples", ctypes.c_char_p), ("augment", ctypes.c_int),
                ("threads", ctypes.c_int)]


class Batch(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_int64), ("step", ctypes.c_int64),
                ("count", ctypes.c_int64), ("share", ctypes.c_int64),
                ("input", ctypes.POINTER(ctypes.c_float)),
                ("target", ctypes.POINTER(ctypes.c_int64)),
                ("ids", ctypes.POINTER(ctypes.c_uint64)),
                ("inputs", ctypes.c_void_p * 8), ("targets", ctypes.c_void_p * 8)]


RANK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                        ctypes.POINTER(Error))


def main():
    library, path, elems, batch, threads = sys.argv[1:]
    cddp = ctypes.CDLL(library)
    files = (ctypes.c_char_p * 2)(path.encode(), None)
    config = DataConfig(files=files, input=b"/x", target=b"/y", input_elems=int(elems),
                        classes=1 << 30, batch=int(batch), shuffle=b"chunk", seed=1,
                        epochs=1, prefetch=4, validate=b"none",
                        threads=int(threads))

    def check(code, error):
        if code != 0:
            sys.exit(error.text.decode())

    def epoch(group, visit):
        error, data = Error(), ctypes.c_void_p()
        item = ctypes.POINTER(Batch)()
        start, total = time.perf_counter(), 0
        check(cddp.cddp_data_open(group, ctypes.byref(config), ctypes.byref(data),
                                  ctypes.byref(error)), error)
        while True:
            check(cddp.cddp_data_next(data, ctypes.byref(item), ctypes.byref(error)), error)
            if not item:
                break
            total += item.contents.count
            visit(item.contents)
        seconds = time.perf_counter() - start
        cddp.cddp_data_close(data)
        return seconds, total

    def rank(group, _context, _error):
        group = ctypes.c_void_p(group)
        for line in sys.stdin:
            words = line.split()
            if words == ["end"]:
                break
            if words[:1] == ["ids"]:
                with open(words[1], "w") as out:
                    epoch(group, lambda b: print(*b.ids[:b.count], file=out))
                print("done", flush=True)
                continue
            total = [0.0]

            def visit(item):
                total[0] += item.input[0] + item.target[item.count - 1]
            seconds, samples = epoch(group, visit)
            print(seconds, total[0], samples, flush=True)
        return 0

    error = Error()
    cddp.cddp_data_close.argtypes = [ctypes.c_void_p]
    check(cddp.cddp_run(ctypes.byref(RunConfig()), RANK(rank), None, ctypes.byref(error)),
          error)


if __name__ == "__main__":
    main()
