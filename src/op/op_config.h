/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op: options of the kinds of ops, shapes and layouts of tensors. See op.h for
 * the legend. */
#ifndef CDDP_OP_OP_CONFIG_H
#define CDDP_OP_OP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op_kind.h"

#define OP_DIMS_MAX 6
#define OP_SPACE_MAX 3 /* maximum; they follow the channels */
#define OP_INPUTS_MAX 8
#define OP_HEAD_MAX 256 /* maximum features of an attention head */
#define OP_PARAMS_MAX 4
#define OP_CUSTOM_OPTIONS 16 /* maximum options of a plugin's op */

typedef enum op_type {
    OP_FLOAT32,
    OP_FLOAT64,
    OP_INT64,
    OP_INT32,
    OP_BFLOAT16, /* of storage (op_desc_t.stored_as) and of products
                    (op_config_t.compute_type); never the type of a tensor */
    OP_TF32      /* of products only: float32 with 10 bits of mantissa */
} op_type_t;

/* Shape and layout of a tensor. */
typedef struct op_desc {
    op_type_t type;      /* type of the elements */
    op_type_t stored_as; /* OP_BFLOAT16: the float32 numbers are stored rounded;
                            any other value: they are stored as [type] */
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    const void *layout; /* NULL: plain; else the backend's own layout. The op
                           that chose the layout owns it: close that op last */
    size_t bytes;       /* of storage, padding of the layout included; ignored
                           in op_config_t.in when layout is NULL */
} op_desc_t;

/* If a tensor with a layout is stored as bfloat16, so is its gradient. The
 * gradient of a plain tensor is stored as its type. */
static inline bool op_stored_bf16(const op_desc_t *desc)
{
    return desc->stored_as == OP_BFLOAT16;
}

typedef struct op_conv {
    int64_t out; /* output channels */
    int64_t kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX],
        dilation[OP_SPACE_MAX]; /* of each spatial dimension, in x's order */
    int64_t groups;
    int64_t out_pad[OP_SPACE_MAX]; /* conv_transpose: elements added at the end
                                      of y; less than the stride */
    int64_t behind[OP_SPACE_MAX];  /* conv: zeros after x, in addition to pad */
} op_conv_t;

typedef struct op_pool {
    int64_t kernel[OP_SPACE_MAX], stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    bool inside; /* avgpool: the mean is over elements of x only; otherwise
                    padding counts as zeros */
    bool ceil;   /* PyTorch's ceil_mode: a last window that starts in x or in
                    the padding before it is used even if it ends after the
                    padding; elements there are left out */
} op_pool_t;

/* pad: elements added before and after each spatial dimension. */
typedef struct op_pad {
    int64_t before[OP_SPACE_MAX], after[OP_SPACE_MAX];
    bool reflect; /* the elements are x, mirrored at its edges; otherwise they
                     are [value] */
    double value;
} op_pad_t;

/* Options of normalisations. */
typedef struct op_norm {
    bool affine;    /* sample norms: with gamma */
    int axis;       /* layernorm, rmsnorm: first normalised dimension */
    int64_t groups; /* groupnorm: number of groups */
    bool bare;      /* batchnorm, syncbatchnorm: without gamma and beta */
    bool frozen;    /* batchnorm: training normalises with the running
                       statistics, too, and does not change them */
} op_norm_t;

/* attention. Query head h reads key and value head h / (heads / kv_heads). */
typedef struct op_heads {
    int64_t heads, kv_heads;
    bool causal; /* token t reads tokens 0 .. t only; requires S = T */
    bool masked; /* the last input is a mask of the valid keys */
} op_heads_t;

/* rotary (Su et al., RoFormer, 2021). */
typedef struct op_rotary {
    int64_t parts; /* x consists of this many heads of D = 2n features */
    int64_t heads; /* the first heads are rotated, the others are copied */
    double base;   /* pair i of token t is rotated by t * base^(-2i/D) */
    bool halves;   /* pair i is features i and i + D/2; otherwise 2i and 2i+1 */
} op_rotary_t;

/* lstm and gru. op_config_t.out is their number of output features. */
typedef struct op_recurrent {
    bool reverse; /* from the last token to the first; y keeps x's order */
    bool last;    /* y is the state after the last step only, [N,out] */
} op_recurrent_t;

/* embedding. */
typedef struct op_embedding {
    int64_t rows;   /* rows of w; tokens are 0 .. rows-1 */
    op_type_t type; /* of w and y: OP_FLOAT32 or OP_FLOAT64 */
} op_embedding_t;

/* cross_entropy: with p = softmax(x), the loss of a position with target t is
 *   -(1 - smoothing) w[t] log p[t] - smoothing / K sum_k w[k] log p[k]
 * If t is the ignored number, loss and gradient are 0. If targets are
 * probabilities t[k], the first term is
 *   -(1 - smoothing) sum_k t[k] w[k] log p[k]
 * bce: in elements of class k along [axis], the term of target t is multiplied
 * by weights[k]. */
typedef struct op_loss {
    int axis; /* dimension of the classes; 0 means 1 */
    double smoothing;
    bool ignore;          /* is [ignored] used? */
    int64_t ignored;      /* target that has no loss */
    const float *weights; /* w [K], must outlive the op; NULL: all 1 */
    double positive;      /* bce without weights: factor of the term of t; 0
                             means 1 */
} op_loss_t;

/* matmul: is the input stored transposed, a as [...,K,M], b as [...,P,K]? */
typedef struct op_transpose {
    bool a, b;
} op_transpose_t;

/* Ops that change the shape of a sample. Dimension 0 is the batch. */
typedef struct op_view {
    int axis;      /* concat, slice: the dimension; mean, max, softmax,
                      log_softmax: the first dimension */
    int axis_last; /* mean, max, softmax, log_softmax: the last dimension */
    int64_t start, size; /* slice: first element, and number of elements */
    int ndim;            /* number of entries in dims */
    int64_t dims[OP_DIMS_MAX]; /* reshape: the sample's new shape; permute: y's
                                  dimension i+1 is x's dims[i]; upsample:
                                  factor of each spatial dimension; adaptive
                                  pools: y's size in each spatial dimension */
} op_view_t;

typedef struct op_config {
    op_kind_t kind;
    bool training; /* false: forward only; dropout and batchnorm in their
                      evaluation form; no workspace */
    bool bias;     /* linear, conv, lstm, gru: with b */
    /* OP_BFLOAT16, OP_TF32: linear, conv, attention, lstm and gru round the
     * factors of their products; sums and stored tensors stay float32 (conv: db
     * sums the rounded dy). Any other value: factors are not rounded. */
    op_type_t compute_type;
    /* OP_BFLOAT16: a kind that is OP_BF16_GIVEN may store y and dy as bfloat16
     * in its own layout. With OP_FUSES_NARROW, norms and a linear with an
     * activation store y for a linear that computes in bfloat16. */
    op_type_t y_stored_as;
    bool relu;            /* batchnorm, add: y = max(0, .); NaN stays NaN */
    op_kind_t activation; /* linear: OP_GELU, OP_GELU_TANH, OP_SILU or OP_NONE,
                             applied to the result */
    bool need_dx;         /* backward computes dx (false for the first layer) */
    int threads;          /* threads that the op may use, >= 1 */
    int64_t out;          /* linear, embedding, lstm, gru: output features */
    bool last;     /* linear: works on the last dimension and keeps the others;
                      otherwise it flattens x */
    bool channels; /* prelu: one slope per channel; otherwise one slope */
    op_conv_t conv;
    op_pool_t pool;
    op_pad_t pad;
    double epsilon, /* norms */
        rate;       /* dropout */
    double alpha;   /* leaky_relu, elu: >= 0; softplus, huber: > 0; scale: any;
                       kl: 1 if targets are logarithms, otherwise 0 */
    op_view_t view;
    op_norm_t norm;
    op_heads_t heads;
    op_embedding_t embedding;
    op_rotary_t rotary;
    op_recurrent_t recurrent;
    op_loss_t loss;
    op_transpose_t transpose;
    const struct cddp_layer *custom; /* OP_CUSTOM; see cddp/plugin.h */
    double custom_options[OP_CUSTOM_OPTIONS];
    op_desc_t in; /* the first input, as its producer describes it */
    int others;   /* number of inputs after the first; batchnorm: 1 if other[0]
                     is added to its result */
    op_desc_t other[OP_INPUTS_MAX - 1];
} op_config_t;

static inline bool op_computes_bf16(const op_config_t *config)
{
    return config->compute_type == OP_BFLOAT16;
}

#endif
