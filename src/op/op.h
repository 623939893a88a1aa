/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * op: the mathematics of one layer, forward and backward. An op is opened once
 * for fixed shapes (batch included) and then runs without allocating. Backends:
 * ref (plain loops, the specification, float32 and float64) and cpu (oneDNN and
 * vector code of our own, float32, which may store tensors as bfloat16).
 *
 * Legend: N samples, C channels, H W height and width, F features. Tensors are
 * row-major with the batch first. A tensor between two ops of one backend may
 * be in a layout of the backend (blocked), which the producing op chooses.
 * Parameters, graph inputs and targets are always plain.
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
#include "op/op_config.h"

typedef struct op op_t;
typedef struct op_backend_ops op_backend_ops_t;

/* Pointers of one call. The kind of op decides which are used; others are NULL.
 */
typedef struct op_args {
    const void *x;
    const void *target; /* losses: int64 [N,...] or float like x */
    void *y; /* written by forward, read by backward; unused by losses
                (see loss_sum) */
    const void *params[OP_PARAMS_MAX]; /* w, b  or  gamma, beta */
    void *dparams[OP_PARAMS_MAX];      /* written by backward */
    bool add; /* with op_adds: backward adds to dparams instead */
    const void *dy;
    void *dx;    /* written by backward */
    bool add_dx; /* with op_adds_dx: backward adds to dx instead */
    const void *other[OP_INPUTS_MAX - 1]; /* inputs after the first */
    void *dother[OP_INPUTS_MAX - 1];      /* their dx; NULL: not computed */
    const float *running_mean;            /* batch norm, evaluation */
    const float *running_var;
    double *moments; /* batch norm, training forward writes [2C]: sums over N
                        and space of x, then of x*x */
    /* syncbatchnorm, training: sum [count] numbers over all ranks that take
     * part, which make the same calls in the same order. Blocks. NULL: one
     * rank.
     */
    err_code_t (*reduce_small)(void *context, double *sums, size_t count,
                               err_t *err);
    void *reduce_context;
    void *workspace; /* op_workspace_bytes, kept from forward to backward */
    void *scratch;   /* op_scratch_bytes, unused after the call */
    const uint64_t *sample_ids;  /* dropout: [N] global sample numbers */
    uint64_t seed, epoch, layer; /* dropout: the rest of the random key */
    const float *sample_weights; /* losses: [N] factors of the samples' losses;
                                    NULL: all 1 */
    double *loss_sum; /* losses: forward writes the sum over samples */
    int64_t *correct; /* cross entropy: forward writes the number of samples
                         with argmax == target */
    double scale;     /* losses: backward multiplies the gradient by this */
} op_args_t;

/* Which backend: "ref" or "cpu". ERR_UNAVAILABLE names those built in. */
err_code_t op_backend_get(const char *name, const op_backend_ops_t **out,
                          err_t *err);

/* Can [backend] compute in bfloat16 on this machine? */
bool op_backend_bf16(const op_backend_ops_t *backend);

/* What a kind of op does with inputs in the backend's own layout that are
 * stored as bfloat16. Arithmetic and sums are float32 in every case. */
typedef enum op_bf16_use {
    OP_BF16_REFUSED, /* it cannot read them */
    OP_BF16_TAKEN,   /* it reads them; y is stored as float32 */
    OP_BF16_KEPT,    /* y is stored as the inputs are */
    OP_BF16_GIVEN    /* it reads them; op_config_t.y_stored_as decides on y */
} op_bf16_use_t;

op_bf16_use_t op_backend_bf16_use(const op_backend_ops_t *backend,
                                  op_kind_t kind);

/* Is an op with config.relu or config.activation, or a batchnorm that adds,
 * faster than separate ops in this backend? (Every backend supports them.) Such
 * a backend also stores plain outputs as bfloat16 (y_stored_as). */
bool op_backend_fuses(const op_backend_ops_t *backend);

/* Infer the output of [config]: plain dims of y ([*out].layout NULL). Pure;
 * ERR_CONFIG says which shapes do not fit (both are named). Losses give [1]. */
err_code_t op_shape(const op_config_t *config, op_desc_t *out, err_t *err);

/* Shapes of the parameters of [config], plain; returns their number in *count.
 * linear, conv: w, then b if config.bias. batchnorm: gamma, beta. */
err_code_t op_params(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX],
                     int *count, err_t *err);

/* cross_entropy: x is [rows / inner, classes, inner], where each row is a
 * position with a target of its own: class k of row r lies at
 * (r / inner * classes + k) * inner + r % inner. */
typedef struct op_classes {
    int64_t rows, classes, inner;
} op_classes_t;

op_classes_t op_classes_of(const op_config_t *config);

/* Make the op: kernels are prepared here. ERR_UNAVAILABLE if the backend does
 * not support it. op_close frees (NULL allowed). */
err_code_t op_open(const op_backend_ops_t *backend, dev_device_t *dev,
                   const op_config_t *config, op_t **out, err_t *err);
void op_close(op_t *op);

const op_desc_t *op_out(const op_t *op); /* y as this op writes it */
/* dx as this op writes it, in the shape and layout of config.in; dy as this op
 * reads it, in those of y. The gradient of a plain tensor is never stored as
 * bfloat16. */
const op_desc_t *op_grad_in(const op_t *op);
const op_desc_t *op_grad_out(const op_t *op);
size_t op_workspace_bytes(const op_t *op);
size_t op_scratch_bytes(const op_t *op);
double op_flops(const op_t *op);  /* of one forward */
bool op_in_place(const op_t *op); /* may y be x (and dx be dy)? Other inputs
                                     are always apart from y and x. */

/* Does backward read x (any input), or y? If not, the caller may reuse the
 * memory after the forwards of all readers. (dropout, flatten: neither; relu:
 * y.)
 */
bool op_reads_x(const op_t *op);
bool op_reads_y(const op_t *op);

/* Can backward add the gradients of parameters to their memory (args.add), and
 * dx (args.add_dx) with the bits of op_add? */
bool op_adds(const op_t *op);
bool op_adds_dx(const op_t *op);

/* Is the gradient of every input equal to dy? Then dx and dother may be dy, and
 * backward copies nothing to those that are. */
bool op_passes_dy(const op_t *op);

/* Run on [stream]. op_grad_out describes dy. A loss's backward reads x and
 * target and writes dx = scale * d(sum)/dx. ERR_DATA: a target is no class, or
 * a weight of a sample is below 0 or no number. The same arguments give the
 * same bits on every call. */
err_code_t op_forward(op_t *op, const op_args_t *args, dev_stream_t *stream,
                      err_t *err);
err_code_t op_backward(op_t *op, const op_args_t *args, dev_stream_t *stream,
                       err_t *err);

/* Storage type, and stored element count including padding of the layout. */
op_type_t op_desc_storage(const op_desc_t *desc);
size_t op_desc_stored_elems(const op_desc_t *desc);

/* Is this a norm of a sample: layernorm, rmsnorm, groupnorm, instancenorm? */
bool op_is_sample_norm(op_kind_t kind);

/* to[i] += from[i] for [count] elements of [type] (float32 or float64, in any
 * backend; bfloat16, if it stores tensors so); for accumulation. */
err_code_t op_add(const op_backend_ops_t *backend, void *to, const void *from,
                  size_t count, op_type_t type, dev_stream_t *stream,
                  err_t *err);

#endif
