/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of the stand-ins share: one lock, the devices with their
 * streams, and how an operation is put on a stream.
 *
 * A call of a library is framed by fake_begin and fake_end, which lock. Streams
 * run late, as those of the device "far" (src/dev/far_queue.h): an operation is
 * executed when the host waits for it, in one of two orders. A thread of the
 * device (fake_engine.c) executes operations that call a function of the host,
 * and operations for which another process waits.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_CUDART_H
#define CDDP_TESTS_CUDA_FAKE_CUDART_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include "dev/far_queue.h"
#include "fake_cuda.h"

#define FAKE_DEVICES 8
/* Bytes that an operation may keep: what a kernel's arguments may have on all
 * GPUs. */
#define FAKE_ARGS 4096

typedef struct fake_block fake_block_t;

/* A graph under capture, and afterwards. */
typedef struct fake_graph fake_graph_t;
typedef struct fake_device fake_device_t;

struct CUstream_st {
    fake_device_t *dev;
    far_line_t line;
    fake_graph_t *capture; /* the capture it belongs to; NULL: none */
    far_line_t *kept;      /* its operations there */
};

struct fake_device {
    bool open;
    far_queue_t queue;
    fake_block_t *blocks;      /* a list */
    size_t bytes;              /* of all blocks */
    bool shown;                /* may the process access them now? */
    bool running;              /* a thread executes operations */
    struct CUstream_st legacy; /* its default stream */
};

struct CUevent_st {
    fake_device_t *dev;
    far_mark_t mark;
    far_mark_t *kept;    /* of the newest record, if that was captured */
    int64_t kept_number; /* of its graph */
};

/* What every file may read under the lock. */
typedef struct fake_state {
    fake_cuda_settings_t settings;
    fake_cuda_counts_t counts;
    const char *last_call, *failed_call;
    cudaError_t sticky; /* of an operation that failed */
    fake_device_t device[FAKE_DEVICES];
} fake_state_t;

extern fake_state_t fake;

/* ---- calls --------------------------------------------------------------- */

/* Lock and count a call named [name]. Returns the error that it has to end
 * with, or cudaSuccess. On an error, too, the caller calls fake_end. */
cudaError_t fake_begin(const char *name);
/* As fake_begin, for a call that must not occur while this thread captures. */
cudaError_t fake_begin_plain(const char *name);
/* Unlock, keep the error for cudaGetLastError, and return it. */
cudaError_t fake_end(cudaError_t error);
/* For the libraries: the error is not CUDA's. */
void fake_end_library(void);
/* An operation that waits for other processes unlocks, so that other threads
 * can use the library. It must copy what it needs of its arguments before. */
void fake_unlock(void);
void fake_lock(void);

/* The device of this thread. */
fake_device_t *fake_current(void);
int fake_current_index(void);
cudaError_t fake_set_current(int index);
/* How many devices are visible, or why none is. */
cudaError_t fake_visible(int *count);
/* The number that the visible device [index] has among all of the machine. */
int fake_number(int index);
void fake_set_last(cudaError_t error);
cudaError_t fake_last(bool forget);

/* ---- operations ---------------------------------------------------------- */

/* Executed late, with the copy of its arguments. */
typedef cudaError_t fake_run_fn(const void *args);

/* Enqueue [run] with a copy of [bytes] bytes, at most FAKE_ARGS; with the lock
 * held. Becomes part of a graph while the stream is captured. */
cudaError_t fake_push(cudaStream_t stream, fake_run_fn *run, const void *args,
                      size_t bytes);

/* The stream that a handle means; NULL: none. The default stream has to be
 * asked for by cudaStreamLegacy: nobody may use it by a forgotten argument. */
cudaStream_t fake_stream(cudaStream_t handle);

/* Execute what [line], [mark] or, if both are NULL, the device has pending. If
 * another thread executes operations of the device, wait for it first. */
cudaError_t fake_run(fake_device_t *dev, far_line_t *line,
                     const far_mark_t *mark);

/* ---- fake_engine.c ------------------------------------------------------- */

/* Let the thread of [dev] execute all that is pending; returns at once. After a
 * call with [live], the thread also does so at each fake_engine_launched: after
 * each launch of a graph, and at queries. Returns whether it does. */
void fake_engine_start(fake_device_t *dev, bool live);
bool fake_engine_launched(fake_device_t *dev);
/* fake_engine_await waits until no thread executes operations of [dev];
 * fake_engine_idle says that the caller executes them no more. Both are called
 * with the lock held. */
void fake_engine_await(fake_device_t *dev);
void fake_engine_idle(fake_device_t *dev);
/* Like pthread_cond_wait, with the lock of fake_lock. */
void fake_sleep(pthread_cond_t *cond);
/* Sleep for ever, and release the lock. */
_Noreturn void fake_hang(void);

/* ---- memory -------------------------------------------------------------- */

/* Let the process access the device's memory, or not. */
void fake_memory_show(fake_device_t *dev, bool shown);
/* Do these bytes lie in one block of some device? */
bool fake_memory_has(const void *at, size_t bytes);
bool fake_memory_pinned(const void *at, size_t bytes);

/* ---- captures ------------------------------------------------------------ */

/* Of this thread: may it only enqueue now? */
bool fake_capturing(void);
/* A call that a capture does not allow: the capture is lost. */
void fake_capture_fail(fake_graph_t *graph);
void fake_capture_fail_mine(void);
far_queue_t *fake_graph_queue(fake_graph_t *graph);
/* Events of captures; as far_queue_record and far_queue_await. */
cudaError_t fake_capture_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t fake_capture_await(cudaEvent_t event, cudaStream_t stream);
/* The host memory that a captured copy writes. */
cudaError_t fake_capture_target(fake_graph_t *graph, void *to, size_t bytes);
/* Count [held] up now, and down when the graph is destroyed. */
cudaError_t fake_capture_hold(fake_graph_t *graph, int64_t *held);

#endif
