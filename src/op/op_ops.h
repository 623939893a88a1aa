/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An op backend: a table with one kernel per kind of op. op.c checks the
 * configuration, fills the op with what it can derive from the configuration
 * (plain output, layout of the gradient), calls the kernel's open, and later
 * forwards the calls. So a kernel never gets an invalid configuration.
 */
#ifndef CDDP_OP_OP_OPS_H
#define CDDP_OP_OP_OPS_H

#include "op/op.h"

struct op_half;    /* op_half.h */
struct op_lowrank; /* op_lowrank.h */
struct op_lowrank_config;
struct op_lowrank_part;

typedef struct op_kernel {
    /* (optional) Prepare the op. May change out, grad_in, workspace and scratch
     * bytes, flops, in_place, adds, reads_* and the like, and set state. op.c
     * calls close even if open fails. */
    err_code_t (*open)(op_t *op, err_t *err);
    void (*close)(op_t *op); /* (optional) */
    err_code_t (*forward)(op_t *op, const op_args_t *args, err_t *err);
    err_code_t (*backward)(op_t *op, const op_args_t *args, err_t *err);
} op_kernel_t;

/* The functions of op_lowrank.h. */
typedef struct op_lowrank_ops {
    err_code_t (*open)(dev_device_t *dev,
                       const struct op_lowrank_config *config,
                       struct op_lowrank **out, err_t *err);
    void (*close)(struct op_lowrank *lowrank);
    err_code_t (*run)(struct op_lowrank *lowrank,
                      const struct op_lowrank_part *part, dev_stream_t *stream,
                      err_t *err);
} op_lowrank_ops_t;

/* The first member of a backend's own struct; op_lowrank_open fills it. */
struct op_lowrank {
    const op_lowrank_ops_t *ops;
};

struct op_backend_ops {
    const char *name;
    bool float64; /* takes float64 as well as float32 */
    bool tf32;    /* has ops that compute in OP_TF32 */
    /* (optional) See op_backend_lacks. [compute_type] is OP_BFLOAT16, or
     * OP_TF32 if [tf32]. NULL: it can compute in both. */
    const char *(*lacks)(const dev_device_t *dev, op_type_t compute_type);
    bool private_in;                  /* takes inputs in layouts of its own */
    unsigned fuses;                   /* of op_fuses_t */
    op_bf16_use_t bf16_use[OP_KINDS]; /* see op_backend_bf16_use */
    const op_kernel_t *kernels[OP_KINDS]; /* NULL: not supported */
    /* (optional) Called before open, forward and backward, in the thread that
     * makes these calls. Sets the number of threads of its team. */
    void (*team)(int threads);
    /* to[i] += from[i] */
    err_code_t (*add)(void *to, const void *from, size_t count, op_type_t type,
                      dev_stream_t *stream, err_t *err);
    /* (optional) See op_fold. NULL: op_fold_host. */
    err_code_t (*fold)(const op_fold_t *fold, dev_stream_t *stream, err_t *err);
    /* (optional) See op_hash. NULL: op_hash_host. */
    err_code_t (*hash)(uint64_t *to, const void *from, size_t words,
                       dev_stream_t *stream, err_t *err);
    /* (optional) op_half_widen if [widen], else op_half_round (op_half.h).
     * NULL: not offered. */
    err_code_t (*half)(const struct op_half *half, bool widen,
                       dev_stream_t *stream, err_t *err);
    const op_lowrank_ops_t *lowrank; /* (optional) NULL: not offered */
};

struct op {
    const op_backend_ops_t *backend;
    const op_kernel_t *kernel;
    dev_device_t *dev;  /* NULL: the host */
    op_config_t config; /* with in.bytes and other[].bytes filled in; in.layout
                           is not used after open */
    op_desc_t out, grad_in, grad_out;
    size_t workspace_bytes, scratch_bytes; /* 0 unless open sets them */
    double flops;
    /* false unless open sets them */
    bool in_place, adds, adds_dx, passes_dy, over_x;
    bool reads_x,     /* true unless open clears it */
        reads_y;      /* false unless open sets it */
    const char *note; /* see op_note; NULL unless open sets it */
    /* The end of opening, see op_settle; NULL unless open sets it. May change
     * what open may change, but for the tensors, and the kernel. */
    err_code_t (*settle)(op_t *op, err_t *err);
    void *state; /* owned by the kernel */
};

/* Backends, one folder each; registry.c lists those that were built in. */
extern const op_backend_ops_t op_ref_backend;
extern const op_backend_ops_t op_cpu_backend;
/* In a plugin (dev/dev_plugin.h). */
extern const op_backend_ops_t op_cuda_backend;

/* The backends that were built in, ended by NULL. */
extern const op_backend_ops_t *const op_registry[];

#endif
