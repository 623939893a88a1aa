/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Making the plans of attention (attention_plan.h) takes some seconds. So they
 * are made once for each shape, and the layers on a device share them. A thread
 * of the device makes them, one shape after the other, while the caller opens
 * other ops or data. It ends when no shape is left.
 *
 * The thread has a handle of cuDNN of its own, as two threads must not use one
 * handle at the same time. The plans belong to this handle, so they may run
 * only when nothing is being planned.
 *
 * Thread rule: as libs.h.
 */
#ifndef CDDP_OP_CUDA_ATTENTION_SHARE_H
#define CDDP_OP_CUDA_ATTENTION_SHARE_H

#include "dev/dev.h"
#include "op/cuda/attention_plan.h"

typedef struct cuda_attention_shared cuda_attention_shared_t;

/* Find the plans of [shape], or let the thread make them. Does not wait for
 * them. ERR_MEMORY: the thread cannot be started. */
err_code_t cuda_attention_share(dev_device_t *dev,
                                const cuda_attention_shape_t *shape,
                                cuda_attention_shared_t **out, err_t *err);

/* Wait until the plans are made. Set *plans, NULL if cuDNN has none for this
 * shape, and *handle, on whose stream they run. Returns the error that the
 * thread met. */
err_code_t cuda_attention_await(cuda_attention_shared_t *shared,
                                const cuda_attention_plans_t **plans,
                                cudnnHandle_t *handle, err_t *err);

/* The last user frees the plans, or keeps the thread from making them. The last
 * user of all shapes waits for the thread, which may have to finish one shape.
 * NULL allowed. */
void cuda_attention_drop(dev_device_t *dev, cuda_attention_shared_t *shared);

#endif
