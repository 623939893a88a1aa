/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The op backend "far": the kernels of the backend "cpu" on the test device
 * (dev/dev_far.h). So results have the bits of "cpu". A call only enqueues its
 * kernel, which runs when the host waits. For test programs only.
 */
#include "base/check.h"
#include "dev/dev_far.h"
#include "op/op_hash.h"
#include "op/op_ops.h"

/* ---- kernels: each op of "far" has an op of "cpu" as its state ------------
 */

static err_code_t far_open(op_t *op, err_t *err)
{
    op_t *inner;
    err_code_t rc;

    check(op->dev != NULL && !dev_host_visible(op->dev),
          "an op of the backend far, but no far device");
    rc = op_open(&op_cpu_backend, NULL, &op->config, &inner, err);
    if (rc != ERR_OK)
        return rc;
    op->state = inner;
    op->out = inner->out;
    op->grad_in = inner->grad_in;
    op->workspace_bytes = inner->workspace_bytes;
    op->scratch_bytes = inner->scratch_bytes;
    op->flops = inner->flops;
    op->in_place = inner->in_place;
    op->adds = inner->adds;
    op->adds_dx = inner->adds_dx;
    op->passes_dy = inner->passes_dy;
    op->over_x = inner->over_x;
    op->reads_x = inner->reads_x;
    op->reads_y = inner->reads_y;
    return ERR_OK;
}

static void far_close(op_t *op)
{
    op_close(op->state);
}

/* A call of an op. */
typedef struct far_call {
    op_t *inner;
    op_args_t args;
} far_call_t;

static err_code_t run_forward(void *arg, err_t *err)
{
    far_call_t *call = arg;

    return op_forward(call->inner, &call->args, err);
}

static err_code_t run_backward(void *arg, err_t *err)
{
    far_call_t *call = arg;

    return op_backward(call->inner, &call->args, err);
}

static err_code_t far_enqueue(op_t *op, const op_args_t *args,
                              dev_far_run_fn *run, err_t *err)
{
    const far_call_t call = {op->state, *args};

    return dev_far_enqueue(args->stream, run, &call, sizeof call, err);
}

static err_code_t far_forward(op_t *op, const op_args_t *args, err_t *err)
{
    return far_enqueue(op, args, run_forward, err);
}

static err_code_t far_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return far_enqueue(op, args, run_backward, err);
}

static const op_kernel_t far_kernel = {
    .open = far_open,
    .close = far_close,
    .forward = far_forward,
    .backward = far_backward,
};

/* ---- sums -----------------------------------------------------------------
 */

typedef struct far_sum {
    void *to;
    const void *from;
    size_t count;
    op_type_t type;
} far_sum_t;

static err_code_t run_sum(void *arg, err_t *err)
{
    const far_sum_t *sum = arg;

    return op_add(&op_cpu_backend, sum->to, sum->from, sum->count, sum->type,
                  NULL, err);
}

static err_code_t far_add(void *to, const void *from, size_t count,
                          op_type_t type, dev_stream_t *stream, err_t *err)
{
    const far_sum_t sum = {to, from, count, type};

    return dev_far_enqueue(stream, run_sum, &sum, sizeof sum, err);
}

/* ---- running statistics ----------------------------------------------------
 */

static err_code_t run_fold(void *arg, err_t *err)
{
    return op_fold(&op_cpu_backend, arg, NULL, err);
}

static err_code_t far_fold(const op_fold_t *fold, dev_stream_t *stream,
                           err_t *err)
{
    return dev_far_enqueue(stream, run_fold, fold, sizeof *fold, err);
}

/* ---- hashes ----------------------------------------------------------------
 */

typedef struct far_hash {
    uint64_t *to;
    const void *from;
    size_t words;
} far_hash_t;

static err_code_t run_hash(void *arg, err_t *err)
{
    const far_hash_t *hash = arg;

    (void)err;
    *hash->to = op_hash_host(hash->from, hash->words);
    return ERR_OK;
}

static err_code_t far_hash(uint64_t *to, const void *from, size_t words,
                           dev_stream_t *stream, err_t *err)
{
    const far_hash_t hash = {to, from, words};

    return dev_far_enqueue(stream, run_hash, &hash, sizeof hash, err);
}

static const char *far_lacks(const dev_device_t *dev, op_type_t compute_type)
{
    (void)dev;
    return op_backend_lacks(&op_cpu_backend, NULL, compute_type);
}

static const op_backend_ops_t op_far_backend = {
    .name = "far",
    .lacks = far_lacks,
    .private_in = true,
    .fuses = OP_FUSES_RELU | OP_FUSES_ACTIVATION | OP_FUSES_NARROW,
    .kernels =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    [OP_##kind] = &far_kernel,
#include "op/op_table.inc"
#undef OP
        },
    .bf16_use =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    [OP_##kind] = OP_BF16_##bf16,
#include "op/op_table.inc"
#undef OP
        },
    .add = far_add,
    .fold = far_fold,
    .hash = far_hash,
};

/* In a program that links this file, this list replaces the one in registry.c.
 */
const op_backend_ops_t *const op_registry[] = {
    &op_ref_backend,
    &op_cpu_backend,
    &op_far_backend,
    NULL,
};
