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
#include "op/op_step.h"

typedef struct op op_t;

/* Arguments of one call. The kind of op decides which pointers are used; others
 * are NULL. All point to memory of the op's device, and are read when the
 * kernel runs, which may be after the call. */
typedef struct op_args {
    dev_stream_t *stream; /* of the op's device; host backends: may be NULL */
    const void *x;
    const void *target; /* losses: int64 [N,...], or real numbers like x */
    void *y; /* written by forward, read by backward; unused by losses
                (see loss_sum) */
    const void *params[OP_PARAMS_MAX]; /* w, b  or  gamma, beta */
    void *dparams[OP_PARAMS_MAX];      /* written by backward */
    bool add; /* if op_adds: backward adds to dparams instead of overwriting */
    const void *dy;
    void *dx;    /* written by backward */
    bool add_dx; /* if op_adds_dx: backward adds to dx instead of overwriting */
    const void *other[OP_INPUTS_MAX - 1]; /* inputs after the first */
    void *dother[OP_INPUTS_MAX - 1];      /* their dx; NULL: not computed */
    const float *running_mean;            /* batch norm, evaluation */
    const float *running_var;
    double *moments; /* batch norm, forward in training: writes [2C], the sums
                        over N and space of x, then those of x*x */
    op_rank_sum_t reduce; /* syncbatchnorm, training */
    void *workspace; /* op_workspace_bytes, kept from forward to backward */
    void *scratch;   /* op_scratch_bytes, unused after the call */
    const op_step_t *step;      /* dropout and losses */
    const uint64_t *sample_ids; /* dropout: [N] global sample numbers */
    uint64_t layer; /* dropout: the rest of the key of the random numbers */
    const float *sample_weights; /* losses: [N], factor of each sample's loss;
                                    NULL: all 1 */
    double *loss_sum; /* losses: forward writes the sum over samples */
    double *correct;  /* cross entropy: forward writes the number of targets,
                          not ignored, that equal the argmax of x */
    int loss;         /* losses: the index in step->scales */
} op_args_t;

/* Find the backend [name]. ERR_UNAVAILABLE if it was not built in. */
err_code_t op_backend_get(const char *name, const op_backend_ops_t **out,
                          err_t *err);

/* Why [backend] cannot compute products in [compute_type] on [dev] (NULL: the
 * host), such as "this CPU cannot multiply bfloat16 (it lacks AVX512_BF16 and
 * AMX)". NULL: it can. */
const char *op_backend_lacks(const op_backend_ops_t *backend,
                             const dev_device_t *dev, op_type_t compute_type);

/* What a kind of op does with inputs that are in the backend's own layout and
 * stored as bfloat16. Arithmetic and sums are float32 in every case. */
typedef enum op_bf16_use {
    OP_BF16_REFUSED, /* cannot read them */
    OP_BF16_TAKEN,   /* reads them; y is stored as float32 */
    OP_BF16_KEPT,    /* reads them; y has the storage type of the inputs */
    OP_BF16_GIVEN    /* reads them; y is stored as op_config_t.y_stored_as */
} op_bf16_use_t;

op_bf16_use_t op_backend_bf16_use(const op_backend_ops_t *backend,
                                  op_kind_t kind);

/* What a backend does in one call. */
typedef enum op_fuses {
    /* config.relu, or another input of a batchnorm, is faster than separate
     * ops. (Every backend supports these ops.) */
    OP_FUSES_RELU = 1,
    /* The same for config.activation. */
    OP_FUSES_ACTIVATION = 2,
    /* Sample norms, and a linear with an activation, store plain outputs as
     * bfloat16 (y_stored_as). */
    OP_FUSES_NARROW = 4
} op_fuses_t;

bool op_backend_fuses(const op_backend_ops_t *backend, op_fuses_t what);

/* Infer the plain output of [config] (out->layout is NULL). Losses have the
 * shape [1]. If shapes do not fit, ERR_CONFIG names them. Pure. */
err_code_t op_shape(const op_config_t *config, op_desc_t *out, err_t *err);

/* Shapes of the parameters of [config], plain, and their number in *count.
 * linear, conv: w, then b if config.bias. batchnorm: gamma, beta. */
err_code_t op_params(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX],
                     int *count, err_t *err);

/* cross_entropy: x is [rows / inner, classes, inner]. Each row is a position
 * with a target of its own. Element (r / inner * classes + k) * inner + r %
 * inner of x is class k of row r. */
typedef struct op_classes {
    int64_t rows, classes, inner;
} op_classes_t;

op_classes_t op_classes_of(const op_config_t *config);

/* Open an op: its kernels are prepared here, for memory and streams of [dev]
 * (NULL: of the host). ERR_UNAVAILABLE if the backend does not support it;
 * ERR_CONFIG if no machine could: a plugin's op, or OP_TF32, in a backend
 * without such ops. op_close frees the op (NULL allowed). */
err_code_t op_open(const op_backend_ops_t *backend, dev_device_t *dev,
                   const op_config_t *config, op_t **out, err_t *err);
void op_close(op_t *op);

/* op_open in two parts: op_begin lets a thread do what takes seconds, op_settle
 * waits for it and returns its errors. In between only op_out, op_grad_*,
 * op_flops and op_close may be called, and no op of [dev] may run. */
err_code_t op_begin(const op_backend_ops_t *backend, dev_device_t *dev,
                    const op_config_t *config, op_t **out, err_t *err);
err_code_t op_settle(op_t *op, err_t *err);

const op_desc_t *op_out(const op_t *op); /* of y, as this op writes it */
/* op_grad_in: of dx as this op writes it, in the shape and layout of config.in.
 * op_grad_out: of dy as this op reads it, in the shape and layout of y. The
 * gradient of a plain tensor is never stored as bfloat16. */
const op_desc_t *op_grad_in(const op_t *op);
const op_desc_t *op_grad_out(const op_t *op);
size_t op_workspace_bytes(const op_t *op);
size_t op_scratch_bytes(const op_t *op);
double op_flops(const op_t *op);  /* FLOPs of one forward */
bool op_in_place(const op_t *op); /* may y be x, and dx be dy? Other inputs must
                                     not overlap with y or x */

/* Does backward read x (or any other input), or y? If not, the caller may reuse
 * the memory after the forwards of all readers. (dropout and flatten read
 * neither, relu reads y.) */
bool op_reads_x(const op_t *op);
bool op_reads_y(const op_t *op);

/* Can backward add to dparams (args.add) or to dx (args.add_dx), instead of
 * overwriting them? The result has the bits of op_add. */
bool op_adds(const op_t *op);
bool op_adds_dx(const op_t *op);

/* Is the gradient of every input equal to dy? Then dx and dother may point to
 * dy, and backward copies nothing to such pointers. */
bool op_passes_dy(const op_t *op);

/* How the backend computes this op, such as "by cuDNN"; NULL: its only way. */
const char *op_note(const op_t *op);

/* Losses: may backward write dx over x? */
bool op_over_x(const op_t *op);

/* Run on args->stream. A loss's backward reads x and target and writes dx =
 * scale * d(sum)/dx. ERR_DATA: a target is no class, or a weight of a sample is
 * below 0 or no number. Equal arguments give equal bits on every call. Where
 * the host cannot access the device's memory, the call only enqueues, and the
 * next wait for the stream returns the error. */
err_code_t op_forward(op_t *op, const op_args_t *args, err_t *err);
err_code_t op_backward(op_t *op, const op_args_t *args, err_t *err);

/* Storage type, and stored element count including padding of the layout. */
op_type_t op_desc_storage(const op_desc_t *desc);
size_t op_desc_stored_elems(const op_desc_t *desc);

/* Is this a sample norm: layernorm, rmsnorm, groupnorm or instancenorm? */
bool op_is_sample_norm(op_kind_t kind);

/* to[i] += from[i] for [count] elements of [type]: float32 or float64 in any
 * backend, bfloat16 if the backend stores tensors as bfloat16. */
err_code_t op_add(const op_backend_ops_t *backend, void *to, const void *from,
                  size_t count, op_type_t type, dev_stream_t *stream,
                  err_t *err);

/* Set *to to the hash of [words] 32-bit words at [from] (op_hash.h). Both are
 * memory of the device of [stream]; as op_add, it only enqueues. All backends
 * give the same hash. */
err_code_t op_hash(const op_backend_ops_t *backend, uint64_t *to,
                   const void *from, size_t words, dev_stream_t *stream,
                   err_t *err);

#endif
