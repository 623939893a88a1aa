/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Making the plans of attention (attention_plan.h) takes some seconds. So they
 * are made once for each shape, and the layers on a device share them.
 *
 * Thread rule: as libs.h.
 */
#ifndef CDDP_OP_CUDA_ATTENTION_SHARE_H
#define CDDP_OP_CUDA_ATTENTION_SHARE_H

#include "dev/dev.h"
#include "op/cuda/attention_plan.h"

typedef struct cuda_attention_shared cuda_attention_shared_t;

/* Find or make the plans of [shape]. Blocks until they are made. That cuDNN has
 * none is remembered for the shape, too. */
err_code_t cuda_attention_share(dev_device_t *dev,
                                const cuda_attention_shape_t *shape,
                                cuda_attention_shared_t **out, err_t *err);
/* The last user frees the plans. NULL allowed. */
void cuda_attention_drop(dev_device_t *dev, cuda_attention_shared_t *shared);

/* Return the plans; NULL: cuDNN has none for this shape. */
const cuda_attention_plans_t *
cuda_attention_plans(const cuda_attention_shared_t *shared);

#endif
