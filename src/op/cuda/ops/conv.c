/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv and conv_transpose with plain float32 tensors, on cuDNN: a plan each for
 * y, dx and dw (conv_plan.h). The bias and its gradient are kernels of our own.
 * cuDNN overwrites dw, so a dw that is to be added is computed in scratch. A
 * conv that computes in bfloat16 is in conv_bf16.c.
 */
#include "op/cuda/conv.h"
#include "op/cuda/cuda.h"
#include "op/cuda/planes.h"
#include "op/cuda/room.h"

typedef struct cuda_conv {
    cuda_conv_run_t run;
    cuda_planes_t planes;          /* of y */
    int64_t weights;               /* elements of w */
    size_t pad_at, dw_at, sums_at; /* offsets in scratch */
} cuda_conv_t;

/* ---- opening ------------------------------------------------------------- */

static void conv_place(op_t *op)
{
    cuda_conv_t *conv = op->state;
    size_t end = 0;

    conv->pad_at =
        cuda_room_take(&end, cuda_conv_plans_workspace(&conv->run.plans));
    if (op->config.training)
        conv->dw_at = cuda_room_floats(&end, conv->weights);
    if (op->config.training && op->config.bias)
        conv->sums_at =
            cuda_room_take(&end, cuda_planes_scratch(&conv->planes));
    op->scratch_bytes = end;
}

static err_code_t conv_open(op_t *op, err_t *err)
{
    op_desc_t params[OP_PARAMS_MAX];
    int count = 0;
    cuda_conv_t *conv;
    err_code_t rc;

    if (cuda_conv_is_bf16(&op->config)) {
        op->kernel = &cuda_conv_bf16_kernel;
        return op->kernel->open(op, err);
    }
    rc = mem_new(cuda_conv_t, 1, "a convolution", &conv, err);
    if (rc != ERR_OK)
        return rc;
    op->state = conv;
    rc = op_params(&op->config, params, &count, err);
    if (rc == ERR_OK)
        rc = cuda_conv_run_open(op, &conv->run, err);
    if (rc != ERR_OK)
        return rc;
    conv->weights = op_desc_elems(&params[0]);
    conv->planes = (cuda_planes_t){op->out.dims[0], op->out.dims[1],
                                   op_desc_space(&op->out)};
    conv_place(op);
    op->adds = true;
    return ERR_OK;
}

static void conv_close(op_t *op)
{
    cuda_conv_t *conv = op->state;

    if (conv == NULL)
        return;
    cuda_conv_plans_close(&conv->run.plans);
    mem_free(conv);
}

/* ---- running ------------------------------------------------------------- */

static err_code_t conv_run(const op_t *op, const op_args_t *args,
                           cuda_plan_t *plan, const void *const xwy[3],
                           err_t *err)
{
    const cuda_conv_t *conv = op->state;

    return cuda_conv_run(op, args, &conv->run, plan, xwy, conv->pad_at, err);
}

static err_code_t conv_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_conv_t *conv = op->state;
    const void *const xwy[] = {args->x, args->params[0], args->y};
    err_code_t rc = conv_run(op, args, conv->run.plans.forward, xwy, err);

    if (rc == ERR_OK && op->config.bias)
        rc = cuda_planes_bias(op, args, &conv->planes, args->y, args->params[1],
                              err);
    return rc;
}

static err_code_t conv_backward_params(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    const cuda_conv_t *conv = op->state;
    void *dw =
        args->add ? cuda_room_at(args->scratch, conv->dw_at) : args->dparams[0];
    const void *const xwy[] = {args->x, dw, args->dy};
    err_code_t rc = conv_run(op, args, conv->run.plans.filter, xwy, err);

    if (rc == ERR_OK && args->add)
        rc = cuda_sum(args->dparams[0], dw, (size_t)conv->weights, OP_FLOAT32,
                      args->stream, err);
    if (rc == ERR_OK && op->config.bias)
        rc =
            cuda_planes_sum(op, args, &conv->planes, args->dy, args->dparams[1],
                            cuda_room_at(args->scratch, conv->sums_at), err);
    return rc;
}

static err_code_t conv_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_conv_t *conv = op->state;
    const void *const xwy[] = {args->dx, args->params[0], args->dy};
    err_code_t rc = conv_backward_params(op, args, err);

    if (rc == ERR_OK && op->config.need_dx)
        rc = conv_run(op, args, conv->run.plans.data, xwy, err);
    return rc;
}

const op_kernel_t cuda_conv_kernel = {
    .open = conv_open,
    .close = conv_close,
    .forward = conv_forward,
    .backward = conv_backward,
};
