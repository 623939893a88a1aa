/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention in bfloat16 as plans of cuDNN. There is one graph for the forward
 * pass (products, scale, mask and softmax) and one for the backward pass. cuDNN
 * computes each in one kernel, without the matrix of scores in memory. q, k, v,
 * y and their gradients are bfloat16, and the features of a head are contiguous
 * in memory. The tensors LEVEL and SUMS are float32 [N, H, T].
 *
 * In the cases that cuda_attention_lacks names there are no plans, and our own
 * kernel computes attention (ops/attention.cu). One case is a workspace of more
 * than 512 MiB: deterministic gradients need 2 N H T S bytes.
 */
#ifndef CDDP_OP_CUDA_ATTENTION_PLAN_H
#define CDDP_OP_CUDA_ATTENTION_PLAN_H

#include "op/cuda/cudnn_graph.h"
#include "op/op_attention.h"

#define CUDA_ATTENTION_WORKSPACE ((int64_t)512 << 20)

/* What the plans depend on, besides the device. */
typedef struct cuda_attention_shape {
    int64_t N, T, S, H, G, D; /* as op_attention_t has them */
    int64_t stride[3];        /* from a token of q, k, v to the next one */
    bool causal, training;
} cuda_attention_shape_t;

cuda_attention_shape_t cuda_attention_shape_of(const op_config_t *config);
bool cuda_attention_shapes_equal(const cuda_attention_shape_t *a,
                                 const cuda_attention_shape_t *b);

/* Return why there are no plans for [config] on a GPU of [arch] (90: sm_90), as
 * text to print: "it has a mask of keys". NULL: there may be plans; ask cuDNN.
 */
const char *cuda_attention_lacks(const op_config_t *config, int arch);

/* The tensors of both plans: indices into the addresses that cuda_plan_run
 * gets. The last three are numbers in host memory. */
enum {
    CUDA_ATTENTION_Q,
    CUDA_ATTENTION_K,
    CUDA_ATTENTION_V,
    CUDA_ATTENTION_Y,
    CUDA_ATTENTION_LEVEL, /* written in training: log of the softmax's sum */
    CUDA_ATTENTION_DY,    /* from here to SUMS: backward only */
    CUDA_ATTENTION_DQ,
    CUDA_ATTENTION_DK,
    CUDA_ATTENTION_DV,
    CUDA_ATTENTION_SUMS, /* scratch of N H T float32 */
    CUDA_ATTENTION_SCALE,
    CUDA_ATTENTION_LOWEST,
    CUDA_ATTENTION_ONE,
    CUDA_ATTENTION_TENSORS
};

typedef struct cuda_attention_plans {
    cuda_plan_t *forward;
    cuda_plan_t *backward; /* NULL: evaluation */
} cuda_attention_plans_t;

/* Make the plans, which takes some seconds. If cuDNN has no plan, the result is
 * ERR_OK with *unsupported set: [out] is then empty, and [err] holds cuDNN's
 * message. The caller zeroes [out] before and closes it in any case. */
err_code_t cuda_attention_plans_open(const cuda_attention_shape_t *shape,
                                     const cuda_planner_t *planner,
                                     cuda_attention_plans_t *out,
                                     bool *unsupported, err_t *err);
void cuda_attention_plans_close(cuda_attention_plans_t *plans);

#endif
