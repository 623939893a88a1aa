/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv and conv_transpose as plans of cuDNN. A conv_transpose is the gradient
 * of a conv that has y as input and x as output; so all plans are those of one
 * conv, from its input ("x" below: the op's x, or y of a conv_transpose) to its
 * output ("y"). One spatial dimension becomes two, of which the first has size
 * 1.
 *
 * A conv that computes in bfloat16 has all tensors of its plans as bfloat16
 * with channels last (channels.h); a single group has its channels padded with
 * zeros to a multiple of 8, in the weights, too. cuDNN pads in each call
 * otherwise. Other convs have plain float32 tensors.
 */
#ifndef CDDP_OP_CUDA_CONV_PLAN_H
#define CDDP_OP_CUDA_CONV_PLAN_H

#include "op/cuda/cudnn_graph.h"
#include "op/op.h"

typedef struct cuda_conv_plans {
    cuda_plan_t *forward; /* of the op */
    cuda_plan_t *data;    /* gradient of the op's x; NULL: not needed */
    cuda_plan_t *filter;  /* gradient of w; NULL: evaluation */
} cuda_conv_plans_t;

/* Plan [config], whose output has the shape of [y]. Layouts are ignored: [out]
 * is zeroed, and must be closed even if this fails. */
err_code_t cuda_conv_plans_open(const op_config_t *config, const op_desc_t *y,
                                const cuda_planner_t *planner,
                                cuda_conv_plans_t *out, err_t *err);
void cuda_conv_plans_close(cuda_conv_plans_t *plans);

/* Do the plans of [config] have bfloat16 tensors? Then their weights are
 * [rows, taps, pitch]. */
bool cuda_conv_is_bf16(const op_config_t *config);

typedef struct cuda_conv_weights {
    int64_t rows, taps, pitch;
} cuda_conv_weights_t;

cuda_conv_weights_t cuda_conv_weights_of(const op_config_t *config);

/* The largest workspace of the plans, in bytes. */
size_t cuda_conv_plans_workspace(const cuda_conv_plans_t *plans);

/* Tensors of the op as all its plans number them: run a plan with data[]. For
 * gradients, they are dx, dw and dy. */
enum { CUDA_CONV_X, CUDA_CONV_W, CUDA_CONV_Y, CUDA_CONV_TENSORS };

#endif
