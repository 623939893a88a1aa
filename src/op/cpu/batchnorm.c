/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * batchnorm on oneDNN, in the layout of x; a plain x of more than 5 dimensions
 * is seen as [N,C,space], one without space as images of one pixel. The
 * workspace keeps mean and variance, float [2C]. The moments follow from them
 * in double: sum x = M mean and sum x^2 = M (var + mean^2), which gives var
 * back without cancellation.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/port.h"

typedef struct cpu_norm {
    cpu_room_t room;
    cpu_md_t x; /* as the primitives see it */
    cpu_prim_t forward, backward;
    size_t unwanted; /* offset of dx in scratch, when nobody needs it */
} cpu_norm_t;

static err_code_t cpu_norm_open_backward(op_t *op, cpu_norm_t *norm, err_t *err)
{
    op->workspace_bytes = 2 * (size_t)op->config.in.dims[1] * sizeof(float);
    if (!op->config.need_dx)
        norm->unwanted = cpu_room_take(&norm->room, cpu_md_bytes(&norm->x));
    return cpu_prim_norm_backward(&norm->backward, &norm->room.engine,
                                  &op->config, &norm->x, &norm->forward, err);
}

static err_code_t cpu_norm_open(op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    int64_t flat[3] = {in->dims[0], in->dims[1], op_desc_space(in)};
    cpu_norm_t *norm;
    err_code_t code =
        mem_alloc(sizeof *norm, "a batchnorm op", &op->state, err);

    if (code != ERR_OK)
        return code;
    norm = op->state;
    code = cpu_engine_open(&norm->room.engine, err);
    if (code == ERR_OK)
        code = cpu_md_of(&norm->x, &norm->room.engine, in, err);
    if (code != ERR_OK)
        return code;
    op->out.layout = in->layout;
    op->out.bytes = in->bytes;
    if (in->layout == NULL && flat[2] == 1)
        code =
            cpu_md_pixels(&norm->x, &norm->room.engine, flat[0], flat[1], err);
    else if (in->ndim > 5)
        code = cpu_md_plain(&norm->x, &norm->room.engine, 3, flat, err);
    if (code == ERR_OK)
        code = cpu_prim_norm_forward(&norm->forward, &norm->room.engine,
                                     &op->config, &norm->x, err);
    if (code == ERR_OK && op->config.training)
        code = cpu_norm_open_backward(op, norm, err);
    if (code == ERR_OK)
        cpu_room_finish(&norm->room, op);
    return code;
}

static void cpu_norm_close(op_t *op)
{
    cpu_norm_t *norm = op->state;

    if (norm == NULL)
        return;
    cpu_prim_close(&norm->forward);
    cpu_prim_close(&norm->backward);
    cpu_engine_close(&norm->room.engine);
    mem_free(norm);
}

static void cpu_norm_moments(const op_t *op, const float *kept, double *moments)
{
    const op_desc_t *in = &op->config.in;
    int64_t C = in->dims[1];
    double M = (double)(in->dims[0] * op_desc_space(in));

    for (int64_t c = 0; c < C; c++) {
        double mean = (double)kept[c], var = (double)kept[C + c];

        moments[c] = M * mean;
        moments[C + c] = M * (var + mean * mean);
    }
}

static err_code_t cpu_norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_t *norm = op->state;
    const float *kept = args->workspace;
    bool training = op->config.training;
    int64_t C = op->config.in.dims[1];
    err_code_t code;

    cpu_prim_bind(&norm->forward, DNNL_ARG_SRC, args->x);
    cpu_prim_bind(&norm->forward, DNNL_ARG_DST, args->y);
    cpu_prim_bind(&norm->forward, DNNL_ARG_SCALE, args->params[0]);
    cpu_prim_bind(&norm->forward, DNNL_ARG_SHIFT, args->params[1]);
    cpu_prim_bind(&norm->forward, DNNL_ARG_MEAN,
                  training ? kept : args->running_mean);
    cpu_prim_bind(&norm->forward, DNNL_ARG_VARIANCE,
                  training ? kept + C : args->running_var);
    code = cpu_room_run(&norm->room, &norm->forward, args, err);
    if (code == ERR_OK && training)
        cpu_norm_moments(op, kept, args->moments);
    return code;
}

static err_code_t cpu_norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_t *norm = op->state;
    const float *kept = args->workspace;
    int64_t C = op->config.in.dims[1];

    cpu_prim_bind(&norm->backward, DNNL_ARG_SRC, args->x);
    cpu_prim_bind(&norm->backward, DNNL_ARG_MEAN, kept);
    cpu_prim_bind(&norm->backward, DNNL_ARG_VARIANCE, kept + C);
    cpu_prim_bind(&norm->backward, DNNL_ARG_DIFF_DST, args->dy);
    cpu_prim_bind(&norm->backward, DNNL_ARG_SCALE, args->params[0]);
    cpu_prim_bind(&norm->backward, DNNL_ARG_SHIFT, args->params[1]);
    cpu_prim_bind(&norm->backward, DNNL_ARG_DIFF_SCALE, args->dparams[0]);
    cpu_prim_bind(&norm->backward, DNNL_ARG_DIFF_SHIFT, args->dparams[1]);
    cpu_prim_bind(&norm->backward, DNNL_ARG_DIFF_SRC,
                  op->config.need_dx ? args->dx
                                     : (char *)args->scratch + norm->unwanted);
    return cpu_room_run(&norm->room, &norm->backward, args, err);
}

const op_kernel_t cpu_batchnorm_kernel = {
    .open = cpu_norm_open,
    .close = cpu_norm_close,
    .forward = cpu_norm_forward,
    .backward = cpu_norm_backward,
};
