/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op: the kinds of ops. See op.h for the legend, op_config.h for their options.
 */
#ifndef CDDP_OP_OP_KIND_H
#define CDDP_OP_OP_KIND_H

typedef enum op_kind {
    OP_LINEAR, /* x [N,F] (further dims flattened, or if last: [...,F]), w
                  [O,F], b [O] */
    OP_CONV2D, /* x [N,C,...], w [O,C/groups,...], b [O]; 1 to 3
                  dimensions of space */
    OP_CONV_TRANSPOSE, /* x [N,C,...], w [C,out/groups,...], b [out]: the
                          gradient of x of a conv, as a forward */
    OP_RELU,           /* any shape */
    OP_MAXPOOL2D,      /* x [N,C,...] */
    OP_BATCHNORM, /* x [N,C,...], gamma [C], beta [C] (op_norm_t.bare: none);
                     states mean, var [C] */
    OP_SYNCBATCHNORM, /* the same, over the samples of all that take part in
                         op_args.reduce_small */
    OP_DROPOUT,       /* any shape; scaled by 1/(1-p) in training */
    OP_FLATTEN,       /* x [N,...] -> [N, product] */
    OP_CROSS_ENTROPY, /* logits [N,...] with the classes along dimension
                         loss.axis, target int64 of x's shape without it ->
                         sum of losses (op_loss_t) */
    OP_MSE,           /* x [N,...], target float [N,...] -> sum of squares */
    /* structure: several inputs, and other views of the same numbers */
    OP_ADD,      /* sum of inputs of one shape */
    OP_MUL,      /* product of inputs of one shape, element by element */
    OP_CONCAT,   /* inputs that differ in dimension axis only, side by side */
    OP_RESHAPE,  /* the same elements in the same order, [N, dims...] */
    OP_PERMUTE,  /* the dimensions of a sample in another order */
    OP_SLICE,    /* elements start .. start+size-1 of dimension axis */
    OP_MEAN,     /* over the dimensions axis .. axis_last */
    OP_UPSAMPLE, /* x [N,C,...]: every element dims[i] times along space i */
    OP_UPSAMPLE_LINEAR, /* the same extent, linear between the elements */
    OP_MAX,             /* as mean: the largest */
    OP_PAD,             /* x [N,C,...]: elements around its space (op_pad_t) */
    /* activations, element by element, any shape */
    OP_LEAKY_RELU, /* x > 0 ? x : alpha x */
    OP_GELU,       /* x times the normal distribution function of x */
    OP_GELU_TANH,  /* the same, approximated by tanh */
    OP_SILU,       /* x sigmoid(x) */
    OP_ELU,        /* x > 0 ? x : alpha (exp(x) - 1) */
    OP_SIGMOID,    /* 1 / (1 + exp(-x)) */
    OP_TANH,
    OP_SOFTPLUS, /* log(1 + exp(alpha x)) / alpha */
    OP_SCALE,    /* alpha x */
    /* norms of a sample, then scaled and shifted: gamma if norm.affine, beta
     * if bias, too */
    OP_LAYERNORM,    /* over the dimensions from norm.axis on, which are gamma's
                        and beta's shape */
    OP_RMSNORM,      /* the same without mean and beta */
    OP_GROUPNORM,    /* x [N,C,...], over C/groups channels and space */
    OP_INSTANCENORM, /* x [N,C,...], over the space of each channel */
    OP_AVGPOOL,      /* x [N,C,...]: the mean of each window (op_pool_t) */
    OP_ADAPTIVE_AVGPOOL, /* x [N,C,...] -> view.dims in space: means of windows
                           that cover it evenly */
    /* softmax(q k' / sqrt(D)) v in heads of D features (op_heads_t): x
     * [N,T,(heads + 2 kv_heads) D] is q, k, v side by side; or x is q
     * [N,T,heads D], the others k and v [N,S,kv_heads D], or one that has
     * these side by side. With heads.masked the last input tells which keys
     * are there: [N,S] of 1 and 0, or [N,1], how many of the first. Where there
     * are none, y is 0 */
    OP_ATTENTION,
    OP_POSITION,  /* y = x + w, w of the shape of a sample */
    OP_EMBEDDING, /* x int32 [N,...], w [rows,out]: y [N,...,out] are the rows
                     that x names (op_embedding_t); x has no gradient */
    OP_ROTARY, /* x [N,T,heads x D]: pairs of features turn with t (op_rotary_t)
                */
    OP_LSTM,   /* x [N,T,F], w_ih [4 out,F], w_hh [4 out,out], b_ih, b_hh
                  [4 out] -> y [N,T,out] (op_recurrent_t) */
    OP_GRU,    /* the same with 3 gates */
    /* losses of x and a target of its shape and type; sums over all elements */
    OP_MAE,   /* |x - t| */
    OP_HUBER, /* squares / 2 up to |x - t| = alpha, straight beyond */
    OP_BCE,   /* cross entropy of sigmoid(x) and the probability t, whose part
                 of t is taken loss.positive times */
    OP_KL,    /* t (log t - x): x log-probabilities, t probabilities */
    OP_ADAPTIVE_MAXPOOL, /* as adaptive_avgpool: the largest */
    OP_CUSTOM,           /* of a plugin: op_config.custom */
    /* New kinds are added at the end, as a model's hash contains the numbers.
     */
    OP_SOFTMAX,     /* exp(x) / sum exp(x), the sum along dimension view.axis */
    OP_LOG_SOFTMAX, /* its logarithm */
    OP_PRELU,       /* x > 0 ? x : a x; a [1], or a [C] of x [N,C,...] if
                       op_config.channels */
    OP_ADD_SPREAD,  /* as add, of samples whose shapes broadcast: aligned at
                       the last dimension, sizes are equal or 1 */
    OP_MUL_SPREAD,  /* as mul, the same */
    OP_AVGPOOL_CEIL, /* as avgpool, where pool.ceil makes windows that reach
                        beyond the padding */
    OP_MATMUL,       /* a [N,...,M,K] b [N,...,K,P] -> y [N,...,M,P]; either may
                        lie turned (op_turn_t) */
    OP_CROSS_ENTROPY_SOFT /* as cross_entropy, with probabilities of x's shape
                             and type as target; none is ignored */
} op_kind_t;
#define OP_KINDS (OP_CROSS_ENTROPY_SOFT + 1)

#endif
