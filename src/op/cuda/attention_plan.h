/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention in bfloat16 as plans of cuDNN: one graph of products, scale, mask
 * and softmax forward, and one backward, which cuDNN computes in one kernel
 * each without the matrix of scores in memory. q, k, v, y and their gradients
 * are bfloat16, with features of a head next to each other; level and sums are
 * float32 [N, H, T].
 *
 * There are no plans for what cuda_attention_lacks names, such as gradients
 * with a workspace of more than 512 MiB: the deterministic ones take 2 N H T S
 * bytes. Then attention is a kernel of our own (ops/attention.cu).
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

/* Why there are no plans for [config] on a GPU of [arch] (90: sm_90), for
 * people: "it has a mask of keys". NULL: cuDNN decides. */
const char *cuda_attention_lacks(const op_config_t *config, int arch);

/* The tensors of the plans: run a plan with data[]. The last three are numbers
 * in host memory. */
enum {
    CUDA_ATTENTION_Q,
    CUDA_ATTENTION_K,
    CUDA_ATTENTION_V,
    CUDA_ATTENTION_Y,
    CUDA_ATTENTION_LEVEL, /* written in training: log of the softmax's sum */
    CUDA_ATTENTION_DY,    /* from here on: of the backward alone */
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

/* Make the plans; some seconds. ERR_OK with *unsupported: cuDNN has none (out
 * is then empty, and [err] has its words). [out] is zeroed, and closed by the
 * caller in any case. */
err_code_t cuda_attention_plans_open(const cuda_attention_shape_t *shape,
                                     const cuda_planner_t *planner,
                                     cuda_attention_plans_t *out,
                                     bool *unsupported, err_t *err);
void cuda_attention_plans_close(cuda_attention_plans_t *plans);

#endif
