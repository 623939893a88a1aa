/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What an op backend is: one table of kernels, one kernel per kind of op. op.c
 * checks the configuration, fills the op with what follows from it (plain
 * output, gradient laid out as the input), calls the kernel's open, and later
 * forwards the calls. So a kernel meets only configurations that fit.
 */
#ifndef CDDP_OP_OP_OPS_H
#define CDDP_OP_OP_OPS_H

#include "op/op.h"
#include "op/op_loss.h"

typedef struct op_kernel {
    /* (optional) Prepare: may change out.layout and out.bytes, workspace and
     * scratch bytes, in_place, reads_*, and set state. On failure it leaves
     * nothing behind, or leaves it to close, which is called either way. */
    err_code_t (*open)(op_t *op, err_t *err);
    void (*close)(op_t *op); /* (optional) */
    err_code_t (*forward)(op_t *op, const op_args_t *args, err_t *err);
    err_code_t (*backward)(op_t *op, const op_args_t *args, err_t *err);
} op_kernel_t;

struct op_backend_ops {
    const char *name;
    bool float64; /* does it take float64? (float32: always) */
    /* (optional) Can this machine multiply bfloat16? default: it can */
    bool (*bf16)(void);
    bool private_in; /* does it take inputs in its private layouts? */
    bool fuses;      /* see op_backend_fuses */
    op_store_t stores[OP_KINDS];          /* see op_backend_stores */
    const op_kernel_t *kernels[OP_KINDS]; /* NULL: not supported */
    /* (optional) Called in the thread that runs the op, before open, forward
     * and backward: make its thread team as large as op->config.threads. */
    void (*team)(int threads);
    /* to[i] += from[i] */
    void (*add)(void *to, const void *from, size_t count, op_type_t type);
};

struct op {
    const op_backend_ops_t *backend;
    const op_kernel_t *kernel;
    op_config_t config; /* in.bytes and other[].bytes filled; in.layout not used
                           after open */
    op_desc_t out, grad_in, grad_out;
    size_t workspace_bytes, scratch_bytes; /* 0 unless the kernel says so */
    double flops;
    bool in_place, adds, adds_dx, passes_dy; /* false unless it says so */
    bool reads_x, reads_y; /* true, false unless the kernel says so */
    void *state;           /* the kernel's own */
};

/* Backends, one folder each; registry.c lists those that were built in. */
extern const op_backend_ops_t op_ref_backend;
extern const op_backend_ops_t op_cpu_backend;

/* The registry, ended by NULL. */
extern const op_backend_ops_t *const op_registry[];

/* ---- helpers on shapes (op_desc.c), pure -------------------------------- */

/* Longest text of op_desc_text, with the NUL. */
#define OP_TEXT_MAX 160

/* "linear", "conv" ...: the name in the run file. */
const char *op_kind_name(op_kind_t kind);

/* "[8, 32, 16, 16]" into [out], which is returned. */
char *op_desc_text(const op_desc_t *desc, char out[OP_TEXT_MAX]);

/* Elements; those of one sample (dims after the first); bytes of one. */
int64_t op_desc_elems(const op_desc_t *desc);
int64_t op_desc_sample(const op_desc_t *desc);
size_t op_type_bytes(op_type_t type);

/* What the op computes in: the type of its outputs and parameters. */
op_type_t op_number_type(const op_config_t *config);

/* linear: features in, and vectors of them. */
int64_t op_linear_features(const op_config_t *config);
int64_t op_linear_rows(const op_config_t *config);

/* Elements of one channel of one sample (dims after the second). */
int64_t op_desc_space(const op_desc_t *desc);

/* Plain [desc] of [type] and [ndim] dims. */
void op_desc_fill(op_desc_t *desc, op_type_t type, int ndim,
                  const int64_t *dims);

/* Is config.in a tensor of numbers (embedding: int32) with [ndim_min] to
 * [ndim_max] dimensions?
 * ERR_CONFIG, else; [expected] is the shape for the sentence. */
err_code_t op_check_input(const op_config_t *config, int ndim_min, int ndim_max,
                          const char *expected, err_t *err);

/* Shapes of the ops of structure (op_shape_view.c). */
err_code_t op_shape_combine(const op_config_t *config, op_desc_t *out,
                            err_t *err);
err_code_t op_shape_view(const op_config_t *config, op_desc_t *out, err_t *err);
err_code_t op_shape_pad(const op_config_t *config, op_desc_t *out, err_t *err);

/* mean, max: x is [outer, count, inner], y [outer, inner]; softmax: as x. */
typedef struct op_reduce {
    int64_t outer, count, inner;
} op_reduce_t;

op_reduce_t op_reduce_of(const op_config_t *config);

/* Call args->reduce_small, if there is one. */
err_code_t op_reduce_small(const op_args_t *args, double *sums, size_t count,
                           err_t *err);

/* syncbatchnorm: kept[c] and kept[C + c] are the sums of x and x * x of channel
 * [c] over kept[2C] elements; make them mean and 1 / sqrt(var + epsilon). */
void op_sync_moments(double *kept, int64_t C, int64_t c, double epsilon);

/* upsample_linear: element [at] of a dimension of y lies between two elements
 * of x's [size], at (at + 1/2) / factor - 1/2, but not outside of x. */
typedef struct op_tap {
    int64_t first, second;
    double weight; /* of the second; the first has the rest */
} op_tap_t;

op_tap_t op_upsample_tap(int64_t at, int64_t factor, int64_t size);

/* pad: which element of x along dimension [i] of space is element [at] of y?
 * -1: none. */
int64_t op_pad_source(const op_config_t *config, int i, int64_t at);

/* Convolutions and pools (op_shape_window.c), and the taps of their window. */
err_code_t op_shape_window(const op_config_t *config, op_desc_t *out,
                           err_t *err);
int op_params_conv_transpose(const op_config_t *config,
                             op_desc_t out[OP_PARAMS_MAX]);
int op_params_conv(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int64_t op_window_taps(const op_config_t *config);
/* Does pool.ceil make a difference? Sizes are positive. */
bool op_pool_reaches_beyond(const op_config_t *config);

/* The norms of a sample (op_shape_norm.c). x is seen as rows of [length]
 * elements, each normalised alone; row r takes the parameters from
 * r % groups * (length / space) on, each for [space] elements. */
typedef struct op_rows {
    int64_t rows, length, groups, space;
} op_rows_t;

op_rows_t op_norm_rows(const op_config_t *config);
err_code_t op_shape_norm(const op_config_t *config, op_desc_t *out, err_t *err);
int op_params_norm(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);

/* lstm, gru: how many gates. */
int op_recurrent_gates(const op_config_t *config);
int op_params_recurrent(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
err_code_t op_shape_recurrent(const op_config_t *config, op_desc_t *out,
                              err_t *err);
err_code_t op_shape_rotary(const op_config_t *config, op_desc_t *out,
                           err_t *err);
err_code_t op_shape_embedding(const op_config_t *config, op_desc_t *out,
                              err_t *err);

/* Is every token of an embedding one of its rows? ERR_DATA names the first that
 * is not, with sample and position. */
err_code_t op_check_tokens(const op_t *op, const op_args_t *args, err_t *err);

/* Ops of plugins (op_custom.c). */
err_code_t op_shape_custom(const op_config_t *config, op_desc_t *out,
                           err_t *err);
int op_params_custom(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);

#endif
