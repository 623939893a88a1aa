/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op: what one can ask for: the options of the kinds of ops (op_kind.h), and
 * the shapes and layouts of tensors. See op.h for the legend. */
#ifndef CDDP_OP_OP_CONFIG_H
#define CDDP_OP_OP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op_kind.h"

#define OP_DIMS_MAX 6
#define OP_SPACE_MAX 3 /* dimensions of space: those after the channels */
#define OP_INPUTS_MAX 8
#define OP_HEAD_MAX 256 /* features of a head of attention */
#define OP_PARAMS_MAX 4
#define OP_CUSTOM_OPTIONS 16 /* numbers that an op of a plugin may take */

typedef enum op_type {
    OP_FLOAT32,
    OP_FLOAT64,
    OP_INT64,
    OP_INT32,
    OP_BFLOAT16 /* of op_add only; see op_desc.bf16 */
} op_type_t;

/* Shape and layout of a tensor. */
typedef struct op_desc {
    op_type_t type;
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    const void *layout; /* NULL: plain; else private to the backend, and owned
                           by the op that chose it: close that one last */
    bool bf16;          /* the layout holds float32 numbers as bfloat16 */
    bool narrow;        /* a plain tensor does (op_config.narrow), but not its
                           gradient */
    size_t bytes;       /* room it needs, padding of the layout included;
                           ignored in op_config.in when layout is NULL */
} op_desc_t;

typedef struct op_conv {
    int64_t out; /* channels */
    int64_t kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX],
        dilation[OP_SPACE_MAX]; /* of each dimension of space, in x's order */
    int64_t groups;
    int64_t out_pad[OP_SPACE_MAX]; /* conv_transpose: < stride; y is larger by
                                      this, behind the last */
    int64_t behind[OP_SPACE_MAX];  /* conv: zeros behind x, beyond pad */
} op_conv_t;

typedef struct op_pool {
    int64_t kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    bool inside; /* avgpool: the mean of what lies inside of x only; else
                    padding counts as zeros */
    bool ceil;   /* a last window that begins inside of x or in the padding
                    before it counts, too, though it reaches beyond the padding
                    behind it; what is beyond counts for nothing */
} op_pool_t;

/* Of pad: elements put before and after each dimension of space. */
typedef struct op_pad {
    int64_t before[OP_SPACE_MAX], after[OP_SPACE_MAX];
    bool reflect; /* x mirrored at its edge elements; else value */
    double value;
} op_pad_t;

/* Of the norms. */
typedef struct op_norm {
    bool affine;    /* of a sample: with gamma */
    int axis;       /* layernorm, rmsnorm: first dimension of the norm */
    int64_t groups; /* groupnorm */
    bool bare;      /* batchnorm, syncbatchnorm: without gamma and beta, as if
                       these were 1 and 0 */
    bool frozen;    /* batchnorm: by the running statistics in training, too,
                       which then are constants; no moments are written */
} op_norm_t;

/* Of attention. Query head h reads the key and value head
 * h / (heads / kv_heads). */
typedef struct op_heads {
    int64_t heads, kv_heads;
    bool causal; /* token t reads tokens 0 .. t only; needs S = T */
    bool masked; /* the last of the others tells which keys are there */
} op_heads_t;

/* Of rotary (Su et al., RoFormer, 2021). */
typedef struct op_rotary {
    int64_t parts; /* x's features are this many heads of D = 2n features */
    int64_t heads; /* the first of them turn, the others stay */
    double base;   /* pair i of token t turns by t * base^(-2i/D) */
    bool halves;   /* pair i is features i and i + D/2; else 2i and 2i+1 */
} op_rotary_t;

/* Of lstm and gru, whose features out are op_config.out. */
typedef struct op_recurrent {
    bool reverse; /* from the last token to the first; y keeps x's order */
    bool last;    /* y [N,out]: the state after the last step only */
} op_recurrent_t;

/* Of embedding. */
typedef struct op_embedding {
    int64_t rows;   /* tokens are 0 .. rows-1 */
    op_type_t type; /* of w and y: OP_FLOAT32 or OP_FLOAT64 */
} op_embedding_t;

/* Of cross_entropy: with p = softmax(x), a position with target t has the loss
 *   -(1 - smoothing) w[t] log p[t] - smoothing / K sum_k w[k] log p[k]
 * and 0, with no gradient, where t is the ignored number. Where the targets
 * are probabilities t[k], the first term is
 *   -(1 - smoothing) sum_k t[k] w[k] log p[k]
 * bce: the target t of an element of class k (along axis, too) counts
 * weights[k] times. */
typedef struct op_loss {
    int axis; /* dimension of the classes; 0 stands for 1 */
    double smoothing;
    bool ignore; /* is there a number that is ignored? */
    int64_t ignored;
    const float *weights; /* w [K], outlives the op; NULL: all 1 */
    double positive;      /* bce without weights: of t; 0 stands for 1 */
} op_loss_t;

/* Of matmul: does the input lie transposed, a as [...,K,M], b as [...,P,K]? */
typedef struct op_turn {
    bool a, b;
} op_turn_t;

/* Of the ops of structure; dimension 0 is the batch, which stays as it is. */
typedef struct op_view {
    int axis;            /* concat, slice; mean, max, softmax, log_softmax: the
                            first of them */
    int axis_last;       /* mean, max, softmax, log_softmax */
    int64_t start, size; /* slice */
    int ndim;            /* numbers in dims */
    int64_t dims[OP_DIMS_MAX]; /* reshape: the sample's new shape; permute: y's
                                  dimension i+1 is x's dims[i]; upsample:
                                  factor of each spatial dimension; adaptive:
                                  y's size of each */
} op_view_t;

typedef struct op_config {
    op_kind_t kind;
    bool training; /* false: forward only, dropout and batch norm in their
                      evaluation form, no workspace kept */
    bool bias;     /* linear, conv, lstm, gru: with b */
    bool bf16;     /* linear, conv, attention, lstm, gru: multiply numbers
                      rounded to bfloat16; sums and all tensors outside stay
                      float32 (conv: db is the sum of the rounded dy) */
    bool y_bf16;   /* conv with bf16: y may lie rounded to bfloat16 */
    bool relu;     /* batchnorm, add: y = max(0, .), where NaN stays NaN */
    op_kind_t activation; /* linear: y = gelu, gelu_tanh or silu of the product;
                        OP_LINEAR, which is 0: the product itself */
    bool narrow; /* linear with an activation, norms of a sample: y is stored as
                    bfloat16, for a linear with bf16, which would round it.
                    Its gradient is not: dy is float32 */
    bool need_dx;  /* backward computes dx (false for the first layer) */
    int threads;   /* team size, >= 1 */
    int64_t out;   /* linear, embedding, lstm, gru: features out */
    bool last;     /* linear: of the last dimension, for each of the others */
    bool channels; /* prelu: a slope for each channel; else one */
    op_conv_t conv;
    op_pool_t pool;
    op_pad_t pad;
    double epsilon; /* norms */
    double rate;    /* dropout */
    double alpha;   /* leaky_relu, elu: >= 0; softplus, huber: > 0; scale;
                       kl: 1 if targets are logarithms, else 0 */
    op_view_t view;
    op_norm_t norm;
    op_heads_t heads;
    op_embedding_t embedding;
    op_rotary_t rotary;
    op_recurrent_t recurrent;
    op_loss_t loss;
    op_turn_t turn;
    const struct cddp_layer *custom; /* OP_CUSTOM: cddp/plugin.h */
    double custom_options[OP_CUSTOM_OPTIONS];
    op_desc_t in; /* the first input, as its producer describes it */
    int others;   /* add, mul, concat: inputs after the first; batchnorm: 1 if
                     other[0] is added to its result; else 0 */
    op_desc_t other[OP_INPUTS_MAX - 1];
} op_config_t;

#endif
