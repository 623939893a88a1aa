/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv and conv_transpose on oneDNN. There are three primitives (forward,
 * gradient of x, gradient of w and b). Each chooses its layouts, and each of
 * its large arguments has a cpu_reorder_t. y leaves the op in the layout that
 * oneDNN chose. w and dw are plain outside the op and are reordered in
 * scratch.
 *
 * With bf16 (conv only) the factors of each product are bfloat16: x and dy are
 * stored so, or the reorders round them. y and dx are rounded if they are to
 * be stored as bfloat16, else float32. Where forward rounds x, backward uses
 * the rounded copy instead of x, if both read it in the same layout.
 *
 * The bias of conv_transpose is added in a separate pass: oneDNN 2.6's own
 * bias takes three times as long as the convolution.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"
#include "op/cpu/ops/bias.h"
#include "op/cpu/ops/conv_im2col.h"

typedef struct cpu_conv {
    cpu_scratch_t scratch;
    cpu_md_t x, w, y; /* layouts outside the op */
    bool keeps_x;     /* forward stores the x that it read in the workspace */
    cpu_prim_t forward, data, weights;
    cpu_im2col_t columns; /* if used: replaces [weights] */
    cpu_bias_t bias; /* if used: added after forward, which has no bias then */
    cpu_reorder_t forward_x, forward_w;
    cpu_reorder_t data_dy, data_w, data_dx;
    cpu_reorder_t weights_x, weights_dy, weights_dw;
} cpu_conv_t;

/* ---- opening ------------------------------------------------------------ */

/* Dimensions of w in oneDNN's order. With more than one group, the number of
 * groups comes first. */
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

/* Set conv->w to the layout of w outside the op, with dimensions [dims] in
 * oneDNN's order. In the w of conv_transpose, the channels of x precede those
 * of y. */
static err_code_t cpu_conv_weight_outside(op_t *op, int ndim,
                                          const int64_t *dims, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const int o =
        ndim -
        op->config.in
            .ndim; /* index of the output channels: 1 with groups, else 0 */
    int64_t stored[OP_DIMS_MAX];
    cpu_order_t order = {.ndim = ndim};
    cpu_md_t plain;
    err_code_t rc;

    if (op->config.kind == OP_CONV2D)
        return cpu_md_plain(&conv->w, &conv->scratch.engine,
                            (cpu_shape_t){ndim, dims, false}, err);
    for (int i = 0; i < ndim; i++) {
        order.from[i] = i == o ? o + 1 : i == o + 1 ? o : i;
        stored[i] = dims[order.from[i]];
    }
    rc = cpu_md_plain(&plain, &conv->scratch.engine,
                      (cpu_shape_t){ndim, stored, false}, err);
    if (rc == ERR_OK)
        rc = cpu_md_permute(&plain, &conv->scratch.engine, &order, &conv->w,
                            err);
    return rc;
}

/* Tensors of a product: bits of a set. */
enum { CPU_CONV_X = 1, CPU_CONV_W = 2, CPU_CONV_Y = 4 };

/* Describe the arguments of a primitive; oneDNN may choose all layouts. If the
 * op computes in bfloat16, the tensors of the set [tensors] are bfloat16. */
static err_code_t cpu_conv_spec(const op_t *op, unsigned tensors,
                                cpu_conv_spec_t *spec, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_engine_t *engine = &conv->scratch.engine;
    const op_config_t *config = &op->config;
    const unsigned rounded =
        op_computes_bf16(config) && config->kind == OP_CONV2D ? tensors : 0;
    int64_t w[OP_DIMS_MAX];
    const int ndim = cpu_conv_weight_dims(config, w);
    err_code_t rc;

    spec->config = config;
    rc = cpu_md_any(&spec->x, engine,
                    cpu_shape_of(&config->in, rounded & CPU_CONV_X), err);
    if (rc == ERR_OK)
        rc = cpu_md_any(&spec->w, engine,
                        (cpu_shape_t){ndim, w, rounded & CPU_CONV_W}, err);
    if (rc == ERR_OK)
        rc = cpu_md_plain(&spec->b, engine,
                          (cpu_shape_t){1, &config->conv.out, false}, err);
    if (rc == ERR_OK)
        rc = cpu_md_any(&spec->y, engine,
                        cpu_shape_of(&op->out, rounded & CPU_CONV_Y), err);
    return rc;
}

/* Make the forward primitive, without bias if cpu_bias_add can add it. */
static err_code_t cpu_conv_make_forward(op_t *op, cpu_conv_spec_t *spec,
                                        err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_engine_t *engine = &conv->scratch.engine;
    op_config_t unbiased = op->config;
    cpu_md_t y;
    err_code_t rc;

    if (op->config.kind == OP_CONV2D || !op->config.bias)
        return cpu_prim_conv_forward(&conv->forward, engine, spec, err);
    unbiased.bias = false;
    spec->config = &unbiased;
    rc = cpu_prim_conv_forward(&conv->forward, engine, spec, err);
    spec->config = &op->config;
    if (rc != ERR_OK)
        return rc;
    y = cpu_prim_md(&conv->forward, DNNL_ARG_DST);
    rc = cpu_bias_open(&conv->bias, op, engine, &y, err);
    if (rc != ERR_OK || conv->bias.used)
        return rc;
    cpu_prim_close(&conv->forward);
    return cpu_prim_conv_forward(&conv->forward, engine, spec, err);
}

static err_code_t cpu_conv_open_forward(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *scratch = &conv->scratch;
    const unsigned y = op->config.y_stored_as == OP_BFLOAT16 ? CPU_CONV_Y : 0;
    cpu_conv_spec_t spec;
    cpu_md_t x, w;
    err_code_t rc = cpu_conv_spec(op, CPU_CONV_X | CPU_CONV_W | y, &spec, err);

    if (rc == ERR_OK)
        rc = cpu_conv_make_forward(op, &spec, err);
    if (rc != ERR_OK)
        return rc;
    x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);
    w = cpu_prim_md(&conv->forward, DNNL_ARG_WEIGHTS);
    conv->y = cpu_prim_md(&conv->forward, DNNL_ARG_DST);
    rc = cpu_reorder_open_in(&conv->forward_x, scratch, &conv->x, &x, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(&conv->forward_w, scratch, &conv->w, &w, err);
    return rc;
}

static err_code_t cpu_conv_open_data(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *scratch = &conv->scratch;
    const unsigned x = op_stored_bf16(&op->config.in) ? CPU_CONV_X : 0;
    cpu_conv_spec_t spec;
    cpu_md_t dy, w, dx;
    err_code_t rc = cpu_conv_spec(op, CPU_CONV_Y | CPU_CONV_W | x, &spec, err);

    if (rc == ERR_OK)
        rc = cpu_prim_conv_data(&conv->data, &scratch->engine, &spec,
                                &conv->forward, err);
    if (rc != ERR_OK)
        return rc;
    dy = cpu_prim_md(&conv->data, DNNL_ARG_DIFF_DST);
    w = cpu_prim_md(&conv->data, DNNL_ARG_WEIGHTS);
    dx = cpu_prim_md(&conv->data, DNNL_ARG_DIFF_SRC);
    rc = cpu_reorder_open_in(&conv->data_dy, scratch, &conv->y, &dy, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(&conv->data_w, scratch, &conv->w, &w, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_out(&conv->data_dx, scratch, &dx, &conv->x, err);
    return rc;
}

/* Prepare x for the gradient of w, which reads it in layout [x]: from the
 * workspace if forward stores it in that layout, else by a reorder. */
static err_code_t cpu_conv_open_x(op_t *op, const cpu_md_t *x, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const cpu_md_t forward_x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);

    conv->keeps_x = op_computes_bf16(&op->config) &&
                    op->config.kind == OP_CONV2D && !conv->forward_x.direct &&
                    cpu_md_equal(x, &forward_x);
    if (!conv->keeps_x)
        return cpu_reorder_open_in(&conv->weights_x, &conv->scratch, &conv->x,
                                   x, err);
    op->workspace_bytes = cpu_md_bytes(x);
    op->reads_x = false;
    return ERR_OK;
}

/* Open the reorders of the gradient of w, which reads and writes its tensors in
 * these layouts. */
static err_code_t cpu_conv_reorder_weights(op_t *op, const cpu_md_t *x,
                                           const cpu_md_t *dy,
                                           const cpu_md_t *dw, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *scratch = &conv->scratch;
    err_code_t rc = cpu_conv_open_x(op, x, err);

    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(&conv->weights_dy, scratch, &conv->y, dy, err);
    if (rc == ERR_OK)
        rc =
            cpu_reorder_open_out(&conv->weights_dw, scratch, dw, &conv->w, err);
    return rc;
}

/* Open the gradient of w as a product of matrices (conv_im2col.h). */
static err_code_t cpu_conv_open_columns(op_t *op, const cpu_md_t *x, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *scratch = &conv->scratch;
    int64_t w[OP_DIMS_MAX];
    const int ndim = cpu_conv_weight_dims(&op->config, w);
    cpu_md_t dy, dw;
    err_code_t rc =
        cpu_md_last(&dy, &scratch->engine, cpu_shape_of(&op->out, true), err);

    if (rc == ERR_OK)
        rc = cpu_md_last(&dw, &scratch->engine, (cpu_shape_t){ndim, w, false},
                         err);
    if (rc == ERR_OK)
        rc = cpu_conv_reorder_weights(op, x, &dy, &dw, err);
    if (rc == ERR_OK)
        rc = cpu_im2col_open(&conv->columns, op, scratch, err);
    return rc;
}

static err_code_t cpu_conv_open_weights(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    cpu_scratch_t *scratch = &conv->scratch;
    cpu_conv_spec_t spec;
    cpu_md_t x, dy, dw;
    cpu_md_t forward_x = cpu_prim_md(&conv->forward, DNNL_ARG_SRC);
    bool suit;
    err_code_t rc =
        cpu_im2col_suit(op, &scratch->engine, &forward_x, &suit, err);

    if (rc != ERR_OK)
        return rc;
    if (suit)
        return cpu_conv_open_columns(op, &forward_x, err);
    rc = cpu_conv_spec(op, CPU_CONV_X | CPU_CONV_Y, &spec, err);
    if (rc == ERR_OK)
        rc = cpu_prim_conv_weights(&conv->weights, &scratch->engine, &spec,
                                   &conv->forward, err);
    if (rc != ERR_OK)
        return rc;
    x = cpu_prim_md(&conv->weights, DNNL_ARG_SRC);
    dy = cpu_prim_md(&conv->weights, DNNL_ARG_DIFF_DST);
    dw = cpu_prim_md(&conv->weights, DNNL_ARG_DIFF_WEIGHTS);
    return cpu_conv_reorder_weights(op, &x, &dy, &dw, err);
}

static err_code_t cpu_conv_open_all(op_t *op, err_t *err)
{
    cpu_conv_t *conv = op->state;
    err_code_t rc = cpu_conv_open_forward(op, err);

    if (rc == ERR_OK && op->config.training) {
        cpu_scratch_restart(&conv->scratch);
        rc = cpu_conv_open_weights(op, err);
        cpu_scratch_restart(
            &conv->scratch); /* the primitives run one after the other */
        if (rc == ERR_OK && op->config.need_dx)
            rc = cpu_conv_open_data(op, err);
    }
    if (rc == ERR_OK)
        rc = cpu_md_publish(&conv->y, &conv->scratch.engine, &op->out, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&conv->scratch, op);
    return rc;
}

static err_code_t cpu_conv_open(op_t *op, err_t *err)
{
    int64_t dims[OP_DIMS_MAX] = {0};
    int ndim = cpu_conv_weight_dims(&op->config, dims);
    cpu_conv_t *conv;
    err_code_t rc = mem_new(cpu_conv_t, 1, "a conv op", &conv, err);

    if (rc != ERR_OK)
        return rc;
    op->state = conv;
    rc = cpu_engine_open(&conv->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_md_of(&conv->x, &conv->scratch.engine, &op->config.in, err);
    if (rc == ERR_OK)
        rc = cpu_conv_weight_outside(op, ndim, dims, err);
    if (rc == ERR_OK)
        rc = cpu_conv_open_all(op, err);
    return rc;
}

static void cpu_conv_close(op_t *op)
{
    cpu_conv_t *conv = op->state;
    cpu_reorder_t *reorders[] = {&conv->forward_x,  &conv->forward_w,
                                 &conv->data_dy,    &conv->data_w,
                                 &conv->data_dx,    &conv->weights_x,
                                 &conv->weights_dy, &conv->weights_dw};

    if (conv == NULL)
        return;
    for (size_t i = 0; i < sizeof reorders / sizeof reorders[0]; i++)
        cpu_reorder_close(reorders[i]);
    cpu_prim_close(&conv->forward);
    cpu_prim_close(&conv->data);
    cpu_prim_close(&conv->weights);
    cpu_im2col_close(&conv->columns);
    cpu_engine_close(&conv->scratch.engine);
    mem_free(conv);
}

/* ---- running ------------------------------------------------------------ */

static err_code_t cpu_conv_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *x = args->workspace, *w;
    err_code_t rc =
        conv->keeps_x
            ? cpu_reorder_read_to(&conv->forward_x, args, args->x,
                                  args->workspace, err)
            : cpu_reorder_read(&conv->forward_x, args, args->x, &x, err);

    if (rc == ERR_OK)
        rc = cpu_reorder_read(&conv->forward_w, args, args->params[0], &w, err);
    if (rc != ERR_OK)
        return rc;
    cpu_prim_bind(&conv->forward, DNNL_ARG_SRC, x);
    cpu_prim_bind(&conv->forward, DNNL_ARG_WEIGHTS, w);
    if (!conv->bias.used)
        cpu_prim_bind(&conv->forward, DNNL_ARG_BIAS, args->params[1]);
    cpu_prim_bind(&conv->forward, DNNL_ARG_DST, args->y);
    rc = cpu_scratch_run(&conv->scratch, &conv->forward, args, err);
    if (rc == ERR_OK && conv->bias.used)
        cpu_bias_add(&conv->bias, op->config.threads, args->params[1], args->y);
    return rc;
}

static err_code_t cpu_conv_run_weights(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *x = args->workspace, *dy;
    void *dw = cpu_reorder_place(&conv->weights_dw, args, args->dparams[0]);
    err_code_t rc = ERR_OK;

    if (!conv->keeps_x)
        rc = cpu_reorder_read(&conv->weights_x, args, args->x, &x, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_read(&conv->weights_dy, args, args->dy, &dy, err);
    if (rc != ERR_OK)
        return rc;
    if (conv->columns.used) {
        rc = cpu_im2col_run(
            &conv->columns, op, args,
            (cpu_im2col_tensors_t){x, dy, dw,
                                   op->config.bias ? args->dparams[1] : NULL},
            err);
    } else {
        cpu_prim_bind(&conv->weights, DNNL_ARG_SRC, x);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_DST, dy);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_BIAS, args->dparams[1]);
        cpu_prim_bind(&conv->weights, DNNL_ARG_DIFF_WEIGHTS, dw);
        rc = cpu_scratch_run(&conv->scratch, &conv->weights, args, err);
    }
    if (rc == ERR_OK)
        rc = cpu_reorder_flush(&conv->weights_dw, args, args->dparams[0], err);
    return rc;
}

static err_code_t cpu_conv_run_data(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_conv_t *conv = op->state;
    const void *dy, *w;
    err_code_t rc = cpu_reorder_read(&conv->data_dy, args, args->dy, &dy, err);

    if (rc == ERR_OK)
        rc = cpu_reorder_read(&conv->data_w, args, args->params[0], &w, err);
    if (rc != ERR_OK)
        return rc;
    cpu_prim_bind(&conv->data, DNNL_ARG_DIFF_DST, dy);
    cpu_prim_bind(&conv->data, DNNL_ARG_WEIGHTS, w);
    cpu_prim_bind(&conv->data, DNNL_ARG_DIFF_SRC,
                  cpu_reorder_place(&conv->data_dx, args, args->dx));
    rc = cpu_scratch_run(&conv->scratch, &conv->data, args, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_flush(&conv->data_dx, args, args->dx, err);
    return rc;
}

static err_code_t cpu_conv_backward(op_t *op, const op_args_t *args, err_t *err)
{
    err_code_t rc = cpu_conv_run_weights(op, args, err);

    if (rc == ERR_OK && op->config.need_dx)
        rc = cpu_conv_run_data(op, args, err);
    return rc;
}

const op_kernel_t cpu_conv_kernel = {
    .open = cpu_conv_open,
    .close = cpu_conv_close,
    .forward = cpu_conv_forward,
    .backward = cpu_conv_backward,
};
