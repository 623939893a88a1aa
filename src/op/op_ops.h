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
    /* (optional) Can this machine compute in bfloat16? NULL: it can. */
    bool (*bf16)(void);
    bool private_in; /* does it take inputs in its own layouts? */
    bool fuses;      /* see op_backend_fuses */
    op_bf16_use_t bf16_use[OP_KINDS];     /* see op_backend_bf16_use */
    const op_kernel_t *kernels[OP_KINDS]; /* NULL: not supported */
    /* (optional) Called before open, forward and backward, in the thread that
     * makes these calls: sets the size of its team of threads. */
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

#endif
