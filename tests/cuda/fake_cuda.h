/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The controls of the stand-ins for CUDA's libraries. A test finds them in the
 * module that it loads, by dlsym(module, "fake_cuda"). A program that a test
 * starts reads its settings from $CDDP_FAKE_CUDA when the module is loaded:
 * "order=1 schedule=3 memory=1048576 fail=12", with the names below.
 *
 * The settings of a device (all but fail, fail_op and schedule) apply to what
 * is opened or allocated later.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_CUDA_H
#define CDDP_TESTS_CUDA_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_cuda_settings {
    int64_t devices;  /* number; 0: none is visible. Default 1 */
    int64_t driver;   /* the CUDA version it can do, as 13000; 0: no driver */
    int64_t memory;   /* bytes of each device */
    int64_t arch;     /* as 90 */
    int64_t sms;      /* multiprocessors */
    int64_t order;    /* of streams, a dev_far_order_t */
    int64_t schedule; /* of threads, a simt_schedule_t */
    /* Let a later call of a library fail, of those that give nothing back: 1
     * the next one; 0: none. */
    int64_t fail;
    /* Let a later operation of a stream fail, after which all calls do, as when
     * a kernel reads memory that does not exist. 1: the next one; 0: none. */
    int64_t fail_op;
    /* GPUs from this number on are of another model; -1: none is. The number
     * counts all GPUs of the machine, before CUDA_VISIBLE_DEVICES chooses among
     * them. So processes can have different GPUs, with different UUIDs. */
    int64_t other;
    int64_t parts; /* 1: GPUs are parts of one (MIG) */
    int64_t links; /* between GPUs: 0 none, 1 PCI, 2 NVLink */
    /* Versions that the libraries return; 0: those of the headers. */
    int64_t cublaslt, cudnn;
    int64_t hang_copy;  /* this copy never ends. 1: the next one; 0: none */
    int64_t no_capture; /* 1: no capture can begin */
    /* Of NCCL. [nccl]: 0 means that there is no library. [nccl_late]: each call
     * on a communicator stays in progress for so many polls of its state.
     * [nccl_async]: the number of the poll of an open communicator that finds
     * an error; 0: none. [nccl_stuck]: the number of the collective of this
     * process that never ends on the device, 1 is the first; 0: none.
     * [nccl_hangs]: ncclCommAbort does not return. [nccl_windows]: 0 means that
     * the library has no windows (a version before 2.27), 2 that it never opens
     * any. [nccl_silent]: 1 means that a call which stays in progress returns
     * ncclSuccess. [nccl_meets]: 1 means that a call in a capture stays in
     * progress until all ranks have made it, as on machines with NVLS. */
    int64_t nccl, nccl_late, nccl_async, nccl_stuck, nccl_hangs, nccl_windows;
    int64_t nccl_silent, nccl_meets;
} fake_cuda_settings_t;

typedef struct fake_cuda_counts {
    int64_t calls;       /* as [fail] counts them */
    int64_t ops;         /* executed, as [fail_op] counts them */
    int64_t waits;       /* of the host, for a stream, an event or the device */
    int64_t allocs;      /* of device or pinned memory */
    int64_t kernels;     /* executed, those of graphs included */
    int64_t unpinned;    /* copies from or to host memory that is not pinned */
    int64_t graphs;      /* launches */
    int64_t collectives; /* of NCCL, executed */
    int64_t ids;         /* of the communicator of NCCL that was opened last */
    int64_t windows;     /* of communicators, open now */
    int64_t registered;  /* blocks of memory, except windows, now */
    /* What is open now: bytes of devices; streams, events, graphs, blocks of
     * pinned memory, handles and descriptors of libraries. */
    int64_t bytes, objects;
} fake_cuda_counts_t;

typedef struct fake_cuda {
    fake_cuda_settings_t (*get)(void);
    void (*set)(const fake_cuda_settings_t *settings);
    fake_cuda_counts_t (*counts)(void);
    /* Name of the function, or kernel, that [fail] let fail. */
    const char *(*failed_call)(void);
    /* As in a new process: nothing counted, no error left. Nothing may be
     * open. */
    void (*reset)(void);
    /* For a test that enqueues by itself. alloc and free are cudaMalloc and
     * cudaFree on the current GPU; alloc returns NULL after an error of CUDA.
     * copy enqueues a copy within the memory of a GPU on [stream], which is a
     * cudaStream_t; it returns 0, or the error of CUDA. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *block);
    int (*copy)(void *stream, void *to, const void *from, size_t bytes);
} fake_cuda_t;

extern const fake_cuda_t fake_cuda;

#endif
