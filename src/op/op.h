/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * op: the mathematics of one layer, forward and backward. An op is opened once
 * for fixed shapes (batch included) and then runs without allocating. Backends:
 * ref (plain loops, the specification, float32 and float64) and cpu (oneDNN and
 * own vector code, float32).
 *
 * Legend: N samples, C channels, H W height and width, F features. Tensors are
 * row-major with the batch first. A tensor between two ops of one backend may
 * be in a private (blocked) layout, which the producing op chooses; parameters,
 * graph inputs and targets are always plain.
 *
 * Thread rule: an op is used by one thread (and may use `threads` inside).
 */
#ifndef CDDP_OP_OP_H
#define CDDP_OP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dev/dev.h"

#define OP_DIMS_MAX 6
#define OP_INPUTS_MAX 8
#define OP_PARAMS_MAX 4

typedef struct op op_t;
typedef struct op_backend_ops op_backend_ops_t;

typedef enum op_type { OP_FLOAT32, OP_FLOAT64, OP_INT64 } op_type_t;

/* Shape and layout of a tensor. */
typedef struct op_desc {
    op_type_t type;
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    const void *layout; /* NULL: plain; else private to the backend, and owned
                           by the op that chose it: close that one last */
    size_t bytes;       /* room it needs, padding of the layout included;
                           ignored in op_config.in when layout is NULL */
} op_desc_t;

typedef enum op_kind {
    OP_LINEAR,    /* x [N,F] (further dims flattened), w [O,F], b [O] */
    OP_CONV2D,    /* x [N,C,H,W], w [O,C/groups,KH,KW], b [O] */
    OP_RELU,      /* any shape */
    OP_MAXPOOL2D, /* x [N,C,H,W] */
    OP_BATCHNORM, /* x [N,C,...], gamma [C], beta [C]; states mean, var [C] */
    OP_DROPOUT,   /* any shape; scaled by 1/(1-p) in training */
    OP_FLATTEN,   /* x [N,...] -> [N, product] */
    OP_CROSS_ENTROPY, /* logits [N,K], target int64 [N] -> sum of losses */
    OP_MSE,           /* x [N,...], target float [N,...] -> sum of squares */
    /* structure: several inputs, and other views of the same numbers */
    OP_ADD,     /* sum of inputs of one shape */
    OP_MUL,     /* product of inputs of one shape, element by element */
    OP_CONCAT,  /* inputs that differ in dimension axis only, side by side */
    OP_RESHAPE, /* the same elements in the same order, [N, dims...] */
    OP_PERMUTE, /* the dimensions of a sample in another order */
    OP_SLICE,   /* elements start .. start+size-1 of dimension axis */
    OP_MEAN,    /* over the dimensions axis .. axis_last */
    OP_UPSAMPLE /* x [N,C,...]: every element dims[i] times along space i */
} op_kind_t;
#define OP_KINDS (OP_UPSAMPLE + 1)

typedef struct op_conv {
    int64_t out; /* channels */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t groups;
} op_conv_t;

typedef struct op_pool {
    int64_t kernel[2], stride[2], pad[2];
} op_pool_t;

/* Of the ops of structure; dimension 0 is the batch, which stays as it is. */
typedef struct op_view {
    int axis;                  /* concat, slice; mean: the first of them */
    int axis_last;             /* mean */
    int64_t start, size;       /* slice */
    int ndim;                  /* numbers in dims */
    int64_t dims[OP_DIMS_MAX]; /* reshape: the sample's new shape; permute: y's
                                  dimension i+1 is x's dims[i]; upsample:
                                  factor of each spatial dimension */
} op_view_t;

typedef struct op_config {
    op_kind_t kind;
    bool training; /* false: forward only, dropout and batch norm in their
                      evaluation form, no workspace kept */
    bool bias;     /* linear, conv: with b */
    bool need_dx;  /* backward computes dx (false for the first layer) */
    int threads;   /* team size, >= 1 */
    int64_t out;   /* linear: features out */
    op_conv_t conv;
    op_pool_t pool;
    double epsilon; /* batch norm */
    double rate;    /* dropout */
    op_view_t view;
    op_desc_t in; /* the first input, as its producer describes it */
    int others;   /* add, mul, concat: inputs after the first, else 0 */
    op_desc_t other[OP_INPUTS_MAX - 1];
} op_config_t;

/* Pointers of one call. Which are used depends on the kind; unused are NULL. */
typedef struct op_args {
    const void *x;
    const void *target;                /* losses: int64 [N] or float like x */
    void *y;                           /* forward out; backward in (const);
                                          losses: unused (see loss_sum) */
    const void *params[OP_PARAMS_MAX]; /* w, b  or  gamma, beta */
    void *dparams[OP_PARAMS_MAX];      /* overwritten by backward */
    const void *dy;
    void *dx;                             /* overwritten by backward */
    const void *other[OP_INPUTS_MAX - 1]; /* inputs after the first */
    void *dother[OP_INPUTS_MAX - 1];      /* as dx; NULL: not wanted */
    const float *running_mean;            /* batch norm, evaluation */
    const float *running_var;
    double *moments; /* batch norm, training forward: [2C] sums over N and
                        space of x, then of x*x, written */
    void *workspace; /* op_desc workspace_bytes, kept forward->backward */
    void *scratch;   /* op scratch_bytes, free to reuse after the call */
    const uint64_t *sample_ids;  /* dropout: [N] global sample number */
    uint64_t seed, epoch, layer; /* dropout: the rest of the counter's key */
    double *loss_sum; /* losses, forward: sum over samples, written */
    int64_t *correct; /* cross entropy, forward: count of argmax == target */
    double
        scale; /* losses, backward: multiplies the gradient (1/denominator) */
} op_args_t;

/* Which backend: "ref" or "cpu". ERR_UNAVAILABLE names those built in. */
err_code_t op_backend_get(const char *name, const op_backend_ops_t **out,
                          err_t *err);

/* Infer the output of [config]: plain dims of y ([*out].layout NULL). Pure;
 * ERR_CONFIG says which shapes do not fit (both are named). Losses give [1]. */
err_code_t op_shape(const op_config_t *config, op_desc_t *out, err_t *err);

/* Shapes of the parameters of [config], plain; returns their number in *count.
 * linear, conv: w, then b if config.bias. batchnorm: gamma, beta. */
err_code_t op_params(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX],
                     int *count, err_t *err);

/* Make the op: kernels are prepared here. ERR_UNAVAILABLE if the backend does
 * not support it. op_close frees (NULL allowed). */
err_code_t op_open(const op_backend_ops_t *backend, dev_device_t *dev,
                   const op_config_t *config, op_t **out, err_t *err);
void op_close(op_t *op);

const op_desc_t *op_out(const op_t *op);     /* y as this op lays it out */
const op_desc_t *op_grad_in(const op_t *op); /* dx as this op writes it: same
                             dims as in; the layout is that of config.in */
size_t op_workspace_bytes(const op_t *op);
size_t op_scratch_bytes(const op_t *op);
double op_flops(const op_t *op);  /* of one forward */
bool op_in_place(const op_t *op); /* may y be x (and dx be dy)? Other inputs
                                     are always apart from y and x. */

/* Does backward read x (any input), y? If not, the caller may reuse that memory
 * after the forward of all other readers. (dropout, flatten: neither; relu: y.)
 */
bool op_reads_x(const op_t *op);
bool op_reads_y(const op_t *op);

/* Run on [stream]. dy has the layout of op_out. A loss's backward reads x and
 * target and writes dx = scale * d(sum)/dx. ERR_DATA: a target is no class.
 * The same arguments give the same bits on every call. */
err_code_t op_forward(op_t *op, const op_args_t *args, dev_stream_t *stream,
                      err_t *err);
err_code_t op_backward(op_t *op, const op_args_t *args, dev_stream_t *stream,
                       err_t *err);

/* to[i] += from[i] for [count] elements of [type] (float32 or float64, in any
 * backend); for accumulation. */
err_code_t op_add(const op_backend_ops_t *backend, void *to, const void *from,
                  size_t count, op_type_t type, dev_stream_t *stream,
                  err_t *err);

#endif
