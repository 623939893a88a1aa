/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv and conv_transpose on oneDNN: three primitives (forward, gradient of x,
 * gradient of w and b), which choose the layouts, and a port for each of their
 * big arguments. y goes out as oneDNN chose; w and dw are plain outside and are
 * reordered in scratch. With bf16 (conv) the factors of each product are
 * bfloat16 inside: x and dy lie so, or the ports round. y, and dx, are rounded
 * where they are to lie so, else float32. Where forward rounds x, that is kept
 * for backward instead of x, if both read it in one layout. The bias of
 * conv_transpose is added in a pass of our own: that of oneDNN 2.6 takes three
 * times as long as the convolution.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"
#include "op/cpu/ops/bias.h"
#include "op/cpu/ops/conv_im2col.h"

typedef struct cpu_conv {
    cpu_scratch_t room;
    cpu_md_t x, w, y; /* as they lie outside */
    bool keeps_x;     /* as forward has read it, in the workspace */
    cpu_prim_t forward, data, weights;
    cpu_im2col_t columns; /* if used: in place of weights */
    cpu_bias_t bias;      /* if used: behind forward, which has none then */
    cpu_reorder_t forward_x, forward_w;
    cpu_reorder_t data_dy, data_w, data_dx;
    cpu_reorder_t weights_x, weights_dy, weights_dw;
} cpu_conv_t;

/* The primitives of a kind. */
typedef struct cpu_conv_prims {
    err_code_t (*forward)(cpu_prim_t *prim, cpu_engine_t *engine,
                          const cpu_conv_spec_t *spec, err_t *err);
    err_code_t (*data)(cpu_prim_t *prim, cpu_engine_t *engine,
                       const cpu_conv_spec_t *spec, const cpu_prim_t *forward,
                       err_t *err);
    err_code_t (*weights)(cpu_prim_t *prim, cpu_engine_t *engine,
                          const cpu_conv_spec_t *spec,
                          const cpu_prim_t *forward, err_t *err);
} cpu_conv_prims_t;

static const cpu_conv_prims_t *cpu_conv_prims(const op_t *op)
{
    static const cpu_conv_prims_t conv = {
        cpu_prim_conv_forward, cpu_prim_conv_data, cpu_prim_conv_weights};
    static const cpu_conv_prims_t transpose = {
        cpu_prim_deconv_forward, cpu_prim_deconv_data, cpu_prim_deconv_weights};

    return op->config.kind == OP_CONV_TRANSPOSE ? &transpose : &conv;
}

/* ---- opening ------------------------------------------------------------ */

/* Dimensions of w as oneDNN wants them: with groups, they come first. */
static int cpu_conv_weight_dims(const op_config_t *config,
                                int64_t dims[OP_DIMS_MAX])
{
    const op_conv_t *conv = &config->conv;
    int64_t groups = conv->groups;
    int ndim = 0;

    if (groups > 1)
        dims[ndim++] = groups;
    dims[ndim++] = conv->out / groups;
    dims[ndim++] = config->in.dims[1] / groups;
    for (int i = 0; i < config->in.ndim - 2; i++)
        dims[ndim++] = conv->kernel[i];
    return ndim;
}

/* w as it lies outside, in oneDNN's order of [ndim] dimensions [dims]; that of
 * conv_transpose has the channels of x first. */
static err_code_t cpu_conv_weight_outside(op_t *op, int ndim,
                                          const int64_t *dims, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const int o = ndim - op->config.in.ndim; /* groups come first */
    int64_t stored[OP_DIMS_MAX];
    int order[OP_DIMS_MAX];
    cpu_md_t plain;
    err_code_t code;

    if (op->config.kind == OP_CONV2D)
        return cpu_md_plain(&conv->w, &conv->room.engine, ndim, dims, err);
    for (int i = 0; i < ndim; i++) {
        order[i] = i == o ? o + 1 : i == o + 1 ? o : i;
        stored[i] = dims[order[i]];
    }
    code = cpu_md_plain(&plain, &conv->room.engine, ndim, stored, err);
    if (code == ERR_OK)
        code = cpu_md_permute(&plain, &conv->room.engine, ndim, order, &conv->w,
                              err);
    return code;
}

/* Which tensors are factors of a product. */
enum { CPU_CONV_X = 1, CPU_CONV_W = 2, CPU_CONV_Y = 4 };

/* What is asked of a primitive whose [tensors] are bfloat16, if the op
 * multiplies such: all layouts free. */
static err_code_t cpu_conv_spec(const op_t *op, unsigned tensors,
                                cpu_conv_spec_t *spec, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_engine_t *engine = &conv->room.engine;
    const op_config_t *config = &op->config;
    const unsigned narrow =
        config->bf16 && config->kind == OP_CONV2D ? tensors : 0;
    int64_t w[OP_DIMS_MAX];
    const int ndim = cpu_conv_weight_dims(config, w);
    err_code_t code;

    spec->config = config;
    code = cpu_md_any(&spec->x, engine, config->in.ndim, config->in.dims,
                      (narrow & CPU_CONV_X) != 0, err);
    if (code == ERR_OK)
        code = cpu_md_any(&spec->w, engine, ndim, w, (narrow & CPU_CONV_W) != 0,
                          err);
    if (code == ERR_OK)
        code = cpu_md_plain(&spec->b, engine, 1, &config->conv.out, err);
    if (code == ERR_OK)
        code = cpu_md_any(&spec->y, engine, op->out.ndim, op->out.dims,
                          (narrow & CPU_CONV_Y) != 0, err);
    return code;
}

/* The forward primitive; if we can add the bias, one without. */
static err_code_t cpu_conv_make_forward(op_t *op, cpu_conv_spec_t *spec,
                                        err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_engine_t *engine = &conv->room.engine;
    op_config_t bare = op->config;
    cpu_md_t y;
    err_code_t code;

    if (op->config.kind == OP_CONV2D || !op->config.bias)
        return cpu_conv_prims(op)->forward(&conv->forward, engine, spec, err);
    bare.bias = false;
    spec->config = &bare;
    code = cpu_conv_prims(op)->forward(&conv->forward, engine, spec, err);
    spec->config = &op->config;
    if (code != ERR_OK)
        return code;
    y = cpu_prim_md(&conv->forward, DNNL_ARG_DST);
    code = cpu_bias_open(&conv->bias, op, engine, &y, err);
    if (code != ERR_OK || conv->bias.used)
        return code;
    cpu_prim_close(&conv->forward);
    return cpu_conv_prims(op)->forward(&conv->forward, engine, spec, err);
}

static err_code_t cpu_conv_open_forward(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *room = &conv->room;
    const unsigned y = op->config.y_bf16 ? CPU_CONV_Y : 0;
    cpu_conv_spec_t spec;
    cpu_md_t x, w;
    err_code_t code =
        cpu_conv_spec(op, CPU_CONV_X | CPU_CONV_W | y, &spec, err);

    if (code == ERR_OK)
        code = cpu_conv_make_forward(op, &spec, err);
    if (code != ERR_OK)
        return code;
    x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);
    w = cpu_prim_md(&conv->forward, DNNL_ARG_WEIGHTS);
    conv->y = cpu_prim_md(&conv->forward, DNNL_ARG_DST);
    code = cpu_reorder_open_in(&conv->forward_x, room, &conv->x, &x, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&conv->forward_w, room, &conv->w, &w, err);
    return code;
}

static err_code_t cpu_conv_open_data(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *room = &conv->room;
    const unsigned x = op->config.in.bf16 ? CPU_CONV_X : 0;
    cpu_conv_spec_t spec;
    cpu_md_t dy, w, dx;
    err_code_t code =
        cpu_conv_spec(op, CPU_CONV_Y | CPU_CONV_W | x, &spec, err);

    if (code == ERR_OK)
        code = cpu_conv_prims(op)->data(&conv->data, &room->engine, &spec,
                                        &conv->forward, err);
    if (code != ERR_OK)
        return code;
    dy = cpu_prim_md(&conv->data, DNNL_ARG_DIFF_DST);
    w = cpu_prim_md(&conv->data, DNNL_ARG_WEIGHTS);
    dx = cpu_prim_md(&conv->data, DNNL_ARG_DIFF_SRC);
    code = cpu_reorder_open_in(&conv->data_dy, room, &conv->y, &dy, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&conv->data_w, room, &conv->w, &w, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_out(&conv->data_dx, room, &dx, &conv->x, err);
    return code;
}

/* Where the gradient of w gets x from, which it reads in layout [x]. */
static err_code_t cpu_conv_open_x(op_t *op, const cpu_md_t *x, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const cpu_md_t forward_x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);

    conv->keeps_x = op->config.bf16 && op->config.kind == OP_CONV2D &&
                    !conv->forward_x.direct && cpu_md_equal(x, &forward_x);
    if (!conv->keeps_x)
        return cpu_reorder_open_in(&conv->weights_x, &conv->room, &conv->x, x,
                                   err);
    op->workspace_bytes = cpu_md_bytes(x);
    op->reads_x = false;
    return ERR_OK;
}

/* The gradient of w as a product of matrices. */
static err_code_t cpu_conv_open_columns(op_t *op, const cpu_md_t *x, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *room = &conv->room;
    int64_t w[OP_DIMS_MAX];
    const int ndim = cpu_conv_weight_dims(&op->config, w);
    cpu_md_t dy, dw;
    err_code_t code =
        cpu_md_last(&dy, &room->engine, op->out.ndim, op->out.dims, true, err);

    if (code == ERR_OK)
        code = cpu_conv_open_x(op, x, err);
    if (code == ERR_OK)
        code = cpu_md_last(&dw, &room->engine, ndim, w, false, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&conv->weights_dy, room, &conv->y, &dy, err);
    if (code == ERR_OK)
        code =
            cpu_reorder_open_out(&conv->weights_dw, room, &dw, &conv->w, err);
    if (code == ERR_OK)
        code = cpu_im2col_open(&conv->columns, op, room, err);
    return code;
}

static err_code_t cpu_conv_open_weights(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *room = &conv->room;
    cpu_conv_spec_t spec;
    cpu_md_t x, dy, dw;
    cpu_md_t forward_x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);
    bool suit;
    err_code_t code =
        cpu_im2col_suit(op, &room->engine, &forward_x, &suit, err);

    if (code != ERR_OK)
        return code;
    if (suit)
        return cpu_conv_open_columns(op, &forward_x, err);
    code = cpu_conv_spec(op, CPU_CONV_X | CPU_CONV_Y, &spec, err);
    if (code == ERR_OK)
        code = cpu_conv_prims(op)->weights(&conv->weights, &room->engine, &spec,
                                           &conv->forward, err);
    if (code != ERR_OK)
        return code;
    x = cpu_prim_md(&conv->weights, DNNL_ARG_SRC);
    dy = cpu_prim_md(&conv->weights, DNNL_ARG_DIFF_DST);
    dw = cpu_prim_md(&conv->weights, DNNL_ARG_DIFF_WEIGHTS);
    code = cpu_conv_open_x(op, &x, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&conv->weights_dy, room, &conv->y, &dy, err);
    if (code == ERR_OK)
        code =
            cpu_reorder_open_out(&conv->weights_dw, room, &dw, &conv->w, err);
    return code;
}

static err_code_t cpu_conv_open_all(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    err_code_t code = cpu_conv_open_forward(op, err);

    if (code == ERR_OK && op->config.training) {
        cpu_scratch_restart(&conv->room);
        code = cpu_conv_open_weights(op, err);
        cpu_scratch_restart(&conv->room); /* they run one after the other */
        if (code == ERR_OK && op->config.need_dx)
            code = cpu_conv_open_data(op, err);
    }
    if (code == ERR_OK)
        code = cpu_md_publish(&conv->y, &conv->room.engine, &op->out, err);
    if (code == ERR_OK)
        cpu_scratch_finish(&conv->room, op);
    return code;
}

static err_code_t cpu_conv_open(op_t *op, err_t *err)
{
    int64_t dims[OP_DIMS_MAX] = {0};
    int ndim = cpu_conv_weight_dims(&op->config, dims);
    cpu_conv_t *conv;
    err_code_t code = mem_alloc(sizeof *conv, "a conv op", &op->state, err);

    if (code != ERR_OK)
        return code;
    conv = op->state;
    code = cpu_engine_open(&conv->room.engine, err);
    if (code == ERR_OK)
        code = cpu_md_of(&conv->x, &conv->room.engine, &op->config.in, err);
    if (code == ERR_OK)
        code = cpu_conv_weight_outside(op, ndim, dims, err);
    if (code == ERR_OK)
        code = cpu_conv_open_all(op, err);
    return code;
}

static void cpu_conv_close(op_t *op)
{
    cpu_conv_t *conv = op->state;
    cpu_reorder_t *ports[] = {&conv->forward_x,  &conv->forward_w,
                              &conv->data_dy,    &conv->data_w,
                              &conv->data_dx,    &conv->weights_x,
                              &conv->weights_dy, &conv->weights_dw};

    if (conv == NULL)
        return;
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        cpu_reorder_close(ports[i]);
    cpu_prim_close(&conv->forward);
    cpu_prim_close(&conv->data);
    cpu_prim_close(&conv->weights);
    cpu_im2col_close(&conv->columns);
    cpu_engine_close(&conv->room.engine);
    mem_free(conv);
}

/* ---- running ------------------------------------------------------------ */

static err_code_t cpu_conv_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *x = args->workspace, *w;
    err_code_t code =
        conv->keeps_x ? cpu_reorder_read_to(&conv->forward_x, &conv->room, args,
                                            args->x, args->workspace, err)
                      : cpu_reorder_read(&conv->forward_x, &conv->room, args,
                                         args->x, &x, err);

    if (code == ERR_OK)
        code = cpu_reorder_read(&conv->forward_w, &conv->room, args,
                                args->params[0], &w, err);
    if (code != ERR_OK)
        return code;
    cpu_prim_bind(&conv->forward, DNNL_ARG_SRC, x);
    cpu_prim_bind(&conv->forward, DNNL_ARG_WEIGHTS, w);
    if (!conv->bias.used)
        cpu_prim_bind(&conv->forward, DNNL_ARG_BIAS, args->params[1]);
    cpu_prim_bind(&conv->forward, DNNL_ARG_DST, args->y);
    code = cpu_scratch_run(&conv->room, &conv->forward, args, err);
    if (code == ERR_OK && conv->bias.used)
        cpu_bias_add(&conv->bias, op->config.threads, args->params[1], args->y);
    return code;
}

static err_code_t cpu_conv_run_weights(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *x = args->workspace, *dy;
    void *dw = cpu_reorder_place(&conv->weights_dw, args, args->dparams[0]);
    err_code_t code = ERR_OK;

    if (!conv->keeps_x)
        code = cpu_reorder_read(&conv->weights_x, &conv->room, args, args->x,
                                &x, err);
    if (code == ERR_OK)
        code = cpu_reorder_read(&conv->weights_dy, &conv->room, args, args->dy,
                                &dy, err);
    if (code != ERR_OK)
        return code;
    if (conv->columns.used) {
        code = cpu_im2col_run(&conv->columns, op, &conv->room, args, x, dy, dw,
                              op->config.bias ? args->dparams[1] : NULL, err);
    } else {
        cpu_prim_bind(&conv->weights, DNNL_ARG_SRC, x);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_DST, dy);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_BIAS, args->dparams[1]);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_WEIGHTS, dw);
        code = cpu_scratch_run(&conv->room, &conv->weights, args, err);
    }
    if (code == ERR_OK)
        code = cpu_reorder_flush(&conv->weights_dw, &conv->room, args,
                                 args->dparams[0], err);
    return code;
}

static err_code_t cpu_conv_run_data(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *dy, *w;
    err_code_t code =
        cpu_reorder_read(&conv->data_dy, &conv->room, args, args->dy, &dy, err);

    if (code == ERR_OK)
        code = cpu_reorder_read(&conv->data_w, &conv->room, args,
                                args->params[0], &w, err);
    if (code != ERR_OK)
        return code;
    cpu_prim_bind(&conv->data, DNNL_ARG_DIFF_DST, dy);
    cpu_prim_bind(&conv->data, DNNL_ARG_WEIGHTS, w);
    cpu_prim_bind(&conv->data, DNNL_ARG_DIFF_SRC,
                  cpu_reorder_place(&conv->data_dx, args, args->dx));
    code = cpu_scratch_run(&conv->room, &conv->data, args, err);
    if (code == ERR_OK)
        code =
            cpu_reorder_flush(&conv->data_dx, &conv->room, args, args->dx, err);
    return code;
}

static err_code_t cpu_conv_backward(op_t *op, const op_args_t *args, err_t *err)
{
    err_code_t code = cpu_conv_run_weights(op, args, err);

    if (code == ERR_OK && op->config.need_dx)
        code = cpu_conv_run_data(op, args, err);
    return code;
}

const op_kernel_t cpu_conv_kernel = {
    .open = cpu_conv_open,
    .close = cpu_conv_close,
    .forward = cpu_conv_forward,
    .backward = cpu_conv_backward,
};
