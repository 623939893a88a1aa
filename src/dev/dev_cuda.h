/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dev_cuda: what code of the plugin libcddp_cuda.so may ask of the device
 * "cuda" beyond dev.h. Nothing outside the plugin includes this.
 */
#ifndef CDDP_DEV_DEV_CUDA_H
#define CDDP_DEV_DEV_CUDA_H

#include <cuda_runtime_api.h>

#include "dev/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct dev_ops dev_cuda_ops;

/* CUDA's stream. Its device becomes the one that this thread launches kernels
 * on. */
cudaStream_t dev_cuda_stream(const dev_stream_t *stream);

cudaEvent_t dev_cuda_event(const dev_event_t *event);

/* Compute capability: 90 for sm_90. */
int dev_cuda_arch(const dev_device_t *dev);

/* An object that the device keeps for a user, such as handles of libraries, and
 * closes when it is closed. At first its fields are NULL. As with
 * dev_cuda_stream, the device becomes this thread's. */
typedef struct dev_cuda_guest {
    void *object;
    void (*close)(void *object);
} dev_cuda_guest_t;

dev_cuda_guest_t *dev_cuda_guest(dev_device_t *dev);

/*
 * The error of a call that returned [status]: the sentence has the name of the
 * function in [call], [what] (the object: a GPU, a layer) and CUDA's text.
 * ERR_OK for cudaSuccess. ERR_MEMORY if there is no memory; ERR_PEER if no
 * later call on this GPU can succeed, since a kernel or the GPU has failed;
 * else ERR_UNAVAILABLE.
 */
err_code_t dev_cuda_check(cudaError_t status, const char *call,
                          const char *what, err_t *err);

/* If [call] fails: return its error, */
#define CUDA_CHECK(call, what, err)                             \
    do {                                                        \
        const cudaError_t status_ = (call);                     \
                                                                \
        if (status_ != cudaSuccess)                             \
            return dev_cuda_check(status_, #call, (what), err); \
    } while (0)

/* or set rc and go to [label]. */
#define CUDA_GOTO(call, what, err, label)                     \
    do {                                                      \
        const cudaError_t status_ = (call);                   \
                                                              \
        if (status_ != cudaSuccess) {                         \
            rc = dev_cuda_check(status_, #call, (what), err); \
            goto label;                                       \
        }                                                     \
    } while (0)

/* Did the kernels start that this thread launched since it last asked? Does not
 * wait for them. */
#define CUDA_CHECK_LAUNCH(what, err) \
    dev_cuda_check(cudaGetLastError(), "a launch", (what), (err))

#ifdef __cplusplus
}
#endif

#endif
