/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The side of the emulator that host code sees: run a kernel's blocks one after
 * the other, each thread of a block as a fiber with its own stack.
 *
 * A fiber runs until it reaches a barrier, a shuffle or a vote; between two of
 * them a thread is never interrupted. Which thread goes on next is chosen by
 * the schedule. A correct kernel writes the same bits under all of them.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_RUN_H
#define CDDP_TESTS_CUDA_SIMT_RUN_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum simt_schedule {
    SIMT_FORWARDS,  /* threads and blocks by index */
    SIMT_BACKWARDS, /* threads and blocks from the last to the first */
    SIMT_RANDOM,    /* in an order that is the same in each run */
    /* A warp goes on to the block's next barrier before another one starts. */
    SIMT_WARPS_FORWARDS,
    SIMT_WARPS_BACKWARDS,
    SIMT_SCHEDULES
} simt_schedule_t;

typedef struct simt_launch {
    const char *name;   /* of the kernel, for messages */
    const void *kernel; /* its address */
    dim3 grid, block;
    size_t shared; /* bytes of dynamic shared memory */
    cudaStream_t stream;
} simt_launch_t;

/* Call the kernel once with the arguments at [args]. */
typedef void simt_call_fn(const void *args);

/* Run all blocks now. Shared memory, static and dynamic, holds NaN (all bits
 * set) when a block begins. Threads of a block that wait at different places,
 * or a warp of which only some threads reach a shuffle or vote, end the process
 * with a sentence on stderr. One launch runs at a time in a process. */
void simt_run(const simt_launch_t *launch, simt_schedule_t schedule,
              simt_call_fn *call, const void *args);

/* What LAUNCH calls. Defined in fake_cudart.c, which keeps a copy of the
 * [bytes] bytes at [args] until the stream runs, and in simt_now.cc, which runs
 * the kernel at once by the schedule simt_now. */
void simt_launch(const simt_launch_t *launch, simt_call_fn *call,
                 const void *args, size_t bytes);

extern simt_schedule_t simt_now;

#ifdef __cplusplus
}
#endif

#endif
