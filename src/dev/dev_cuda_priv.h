/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the files of the device "cuda" share. */
#ifndef CDDP_DEV_DEV_CUDA_PRIV_H
#define CDDP_DEV_DEV_CUDA_PRIV_H

#include "dev/dev_cuda.h"
#include "dev/dev_ops.h"

typedef struct cuda_device {
    dev_device_t base;
    int index; /* among the visible GPUs */
    int arch;
    char name[128]; /* "GPU 0 (NVIDIA H200)" */
    dev_cuda_guest_t guest;
} cuda_device_t;

/* Make [dev] the device of this thread. */
err_code_t dev_cuda_enter(const cuda_device_t *dev, err_t *err);

/* ---- dev_cuda_list.c ----------------------------------------------------- */

/* Number of the visible GPUs. ERR_UNAVAILABLE says why there is none. */
err_code_t dev_cuda_count(int *out, err_t *err);
/* Describe the GPU [index]. */
err_code_t dev_cuda_describe(int index, dev_info_t *out, err_t *err);
err_code_t dev_cuda_list(dev_info_t *out, int room, int *count, err_t *err);

/* ---- dev_cuda_links.c ---------------------------------------------------- */

err_code_t dev_cuda_links(int index, dev_links_t *out, err_t *err);

/* ---- dev_cuda_poll.c ----------------------------------------------------- */

/* Seconds between two calls of a dev_look_fn. */
#define DEV_CUDA_LOOK 0.02

/* Call [poll] until it returns anything but cudaErrorNotReady. (The functions
 * of CUDA that wait cannot be interrupted.) An error of [look] (NULL: none)
 * ends the wait and is returned; [dev] is then abandoned. */
typedef cudaError_t dev_cuda_poll_t(void *object);
err_code_t dev_cuda_poll_or(dev_cuda_poll_t *poll, void *object,
                            cuda_device_t *dev, dev_look_fn *look,
                            void *context, err_t *err);

/* ---- dev_cuda_stream.c --------------------------------------------------- */

err_code_t dev_cuda_stream_open(dev_device_t *base, dev_stream_kind_t kind,
                                dev_stream_t **out, err_t *err);
void dev_cuda_stream_close(dev_stream_t *base);
void *dev_cuda_stream_handle(const dev_stream_t *base);
err_code_t dev_cuda_stream_wait(dev_stream_t *base, err_t *err);
err_code_t dev_cuda_stream_wait_or(dev_stream_t *base, dev_look_fn *look,
                                   void *context, err_t *err);
err_code_t dev_cuda_copy(dev_stream_t *base, void *to, const void *from,
                         size_t bytes, dev_copy_kind_t kind, err_t *err);
err_code_t dev_cuda_fill(dev_stream_t *base, void *to, int byte, size_t bytes,
                         err_t *err);
err_code_t dev_cuda_event_open(dev_device_t *base, dev_event_t **out,
                               err_t *err);
void dev_cuda_event_close(dev_event_t *base);
err_code_t dev_cuda_event_record(dev_event_t *base, dev_stream_t *on,
                                 err_t *err);
err_code_t dev_cuda_event_wait(dev_event_t *base, err_t *err);
err_code_t dev_cuda_event_wait_or(dev_event_t *base, dev_look_fn *look,
                                  void *context, err_t *err);
err_code_t dev_cuda_event_wait_on(dev_event_t *base, dev_stream_t *on,
                                  err_t *err);
err_code_t dev_cuda_capture_begin(dev_stream_t *base, err_t *err);
err_code_t dev_cuda_capture_end(dev_stream_t *base, dev_graph_t **out,
                                err_t *err);
err_code_t dev_cuda_graph_launch(dev_graph_t *base, dev_stream_t *on,
                                 err_t *err);
void dev_cuda_graph_close(dev_graph_t *base);

#endif
