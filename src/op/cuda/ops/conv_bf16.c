/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conv with bfloat16 products. Its plans read and write bfloat16 with channels
 * last (channels.h). A tensor that lies so outside the op is used as it is;
 * plain ones are copied: x into the workspace, so that backward reads the copy;
 * w, and dy, into scratch. y, dx and dw come back as float32 from scratch,
 * where cuDNN has rounded them. db is the sum of the rounded dy.
 */
#include "op/cuda/channels.h"
#include "op/cuda/columns.h"
#include "op/cuda/conv.h"
#include "op/cuda/cuda.h"
#include "op/cuda/room.h"

typedef struct cuda_conv_bf16 {
    cuda_conv_run_t run;
    cuda_channels_t x, y, w;    /* shapes; w is [out, C/groups, taps] */
    cuda_conv_weights_t stored; /* w as its plans read it */
    bool copies_x, copies_y;    /* x or y is plain outside the op */
    size_t x_at; /* offset in the workspace; evaluation: in scratch */
    size_t w_at, y_at, pad_at;             /* in scratch, forward */
    size_t back_w_at, dx_at, dy_at, dw_at; /* in scratch, backward */
    size_t sums_at, back_pad_at;
} cuda_conv_bf16_t;

/* ---- opening ------------------------------------------------------------- */

static int64_t elems_of(const cuda_channels_t *shape)
{
    return shape->N * shape->space * cuda_channels_pitch(shape->C);
}

static int64_t weights_of(const cuda_conv_bf16_t *conv)
{
    return conv->stored.rows * conv->stored.taps * conv->stored.pitch;
}

static void conv_place_forward(op_t *op, size_t *end)
{
    cuda_conv_bf16_t *conv = op->state;
    size_t kept = 0;

    if (conv->copies_x)
        conv->x_at = cuda_room_halves(op->config.training ? &kept : end,
                                      elems_of(&conv->x));
    op->workspace_bytes = kept;
    conv->w_at = cuda_room_halves(end, weights_of(conv));
    if (conv->copies_y)
        conv->y_at = cuda_room_halves(end, elems_of(&conv->y));
    conv->pad_at =
        cuda_room_take(end, cuda_plan_workspace(conv->run.plans.forward));
}

static void conv_place_backward(const op_t *op, size_t *end)
{
    cuda_conv_bf16_t *conv = op->state;

    conv->back_w_at = cuda_room_halves(end, weights_of(conv));
    conv->dw_at = cuda_room_halves(end, weights_of(conv));
    if (conv->copies_y)
        conv->dy_at = cuda_room_halves(end, elems_of(&conv->y));
    if (conv->copies_x && op->config.need_dx)
        conv->dx_at = cuda_room_halves(end, elems_of(&conv->x));
    conv->sums_at = cuda_room_take(
        end, cuda_columns_scratch(conv->y.N * conv->y.space,
                                  cuda_channels_pitch(conv->y.C)));
    conv->back_pad_at =
        cuda_room_take(end, cuda_conv_plans_workspace(&conv->run.plans));
}

static void conv_bf16_place(op_t *op)
{
    cuda_conv_bf16_t *conv = op->state;
    size_t forward = 0, backward = 0;

    conv_place_forward(op, &forward);
    if (op->config.training)
        conv_place_backward(op, &backward);
    op->scratch_bytes = forward > backward ? forward : backward;
    op->reads_x = !conv->copies_x;
    op->adds = true;
}

static err_code_t conv_bf16_open(op_t *op, err_t *err)
{
    const op_config_t *config = &op->config;
    cuda_conv_bf16_t *conv;
    err_code_t rc = mem_new(cuda_conv_bf16_t, 1, "a convolution", &conv, err);

    if (rc != ERR_OK)
        return rc;
    op->state = conv;
    conv->x = cuda_channels_of(&config->in);
    conv->y = cuda_channels_of(&op->out);
    conv->stored = cuda_conv_weights_of(config);
    conv->w = (cuda_channels_t){
        config->conv.out, conv->x.C / config->conv.groups, conv->stored.taps};
    conv->copies_x = config->in.layout == NULL;
    conv->copies_y = config->y_stored_as != OP_BFLOAT16;
    rc = cuda_conv_run_open(op, &conv->run, err);
    if (rc != ERR_OK)
        return rc;
    if (!conv->copies_y)
        cuda_channels_set(&op->out);
    conv_bf16_place(op);
    return ERR_OK;
}

static void conv_bf16_close(op_t *op)
{
    cuda_conv_bf16_t *conv = op->state;

    if (conv == NULL)
        return;
    cuda_conv_plans_close(&conv->run.plans);
    mem_free(conv);
}

/* ---- copies -------------------------------------------------------------- */

/* Copy a plain tensor of [shape] into the layout. */
static err_code_t conv_store(const op_t *op, const op_args_t *args,
                             const cuda_channels_t *shape, const void *from,
                             void *to, err_t *err)
{
    const cuda_to_last_t copy = {.shape = *shape,
                                 .rows = shape->N,
                                 .pitch = cuda_channels_pitch(shape->C),
                                 .from = from,
                                 .to = to};

    return cuda_channels_to_last(op, args, &copy, err);
}

static err_code_t conv_load(const op_t *op, const op_args_t *args,
                            const cuda_channels_t *shape, const void *from,
                            void *to, const float *bias, err_t *err)
{
    const cuda_from_last_t copy = {.shape = *shape,
                                   .pitch = cuda_channels_pitch(shape->C),
                                   .from = from,
                                   .to = to,
                                   .bias = bias};

    return cuda_channels_from_last(op, args, &copy, err);
}

static err_code_t conv_store_w(const op_t *op, const op_args_t *args, void *to,
                               err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    const cuda_to_last_t copy = {.shape = conv->w,
                                 .rows = conv->stored.rows,
                                 .pitch = conv->stored.pitch,
                                 .from = args->params[0],
                                 .to = to};

    return cuda_channels_to_last(op, args, &copy, err);
}

static err_code_t conv_load_dw(const op_t *op, const op_args_t *args,
                               const void *from, err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    const cuda_from_last_t copy = {.shape = conv->w,
                                   .pitch = conv->stored.pitch,
                                   .from = from,
                                   .to = args->dparams[0],
                                   .add = args->add};

    return cuda_channels_from_last(op, args, &copy, err);
}

/* Zero a tensor whose last channels cuDNN does not write: those that pad the
 * channels of several groups. */
static err_code_t conv_clear(const op_t *op, const op_args_t *args,
                             const cuda_channels_t *shape, void *to, err_t *err)
{
    if (op->config.conv.groups == 1 ||
        cuda_channels_pitch(shape->C) == shape->C)
        return ERR_OK;
    return dev_fill(args->stream, to, 0, (size_t)elems_of(shape) * 2, err);
}

/* ---- forward ------------------------------------------------------------- */

/* Address of x as the plans read it. */
static void *conv_x(const op_t *op, const op_args_t *args)
{
    const cuda_conv_bf16_t *conv = op->state;
    void *memory = op->config.training ? args->workspace : args->scratch;

    return conv->copies_x ? cuda_room_at(memory, conv->x_at)
                          : (void *)(uintptr_t)args->x;
}

static err_code_t conv_finish_y(const op_t *op, const op_args_t *args, void *y,
                                err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    const float *bias = op->config.bias ? args->params[1] : NULL;

    if (conv->copies_y)
        return conv_load(op, args, &conv->y, y, args->y, bias, err);
    return bias == NULL ? ERR_OK
                        : cuda_channels_bias(op, args, &conv->y, y, bias, err);
}

static err_code_t conv_bf16_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    void *x = conv_x(op, args), *w = cuda_room_at(args->scratch, conv->w_at);
    void *y =
        conv->copies_y ? cuda_room_at(args->scratch, conv->y_at) : args->y;
    const void *const xwy[] = {x, w, y};
    err_code_t rc = conv_store_w(op, args, w, err);

    if (rc == ERR_OK && conv->copies_x)
        rc = conv_store(op, args, &conv->x, args->x, x, err);
    if (rc == ERR_OK)
        rc = conv_clear(op, args, &conv->y, y, err);
    if (rc == ERR_OK)
        rc = cuda_conv_run(op, args, &conv->run, conv->run.plans.forward, xwy,
                           conv->pad_at, err);
    if (rc == ERR_OK)
        rc = conv_finish_y(op, args, y, err);
    return rc;
}

/* ---- backward ------------------------------------------------------------ */

static err_code_t conv_bf16_params(const op_t *op, const op_args_t *args,
                                   const void *dy, err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    void *dw = cuda_room_at(args->scratch, conv->dw_at);
    const void *const xwy[] = {conv_x(op, args), dw, dy};
    const cuda_columns_t columns = {
        .rows = conv->y.N * conv->y.space,
        .columns = cuda_channels_pitch(conv->y.C),
        .dy = dy,
        .dy_bf16 = true,
        .sum = args->dparams[1],
        .kept = conv->y.C,
        .add = args->add,
        .scratch = cuda_room_at(args->scratch, conv->sums_at)};
    err_code_t rc = cuda_conv_run(op, args, &conv->run, conv->run.plans.filter,
                                  xwy, conv->back_pad_at, err);

    if (rc == ERR_OK)
        rc = conv_load_dw(op, args, dw, err);
    if (rc == ERR_OK && op->config.bias)
        rc = cuda_columns_run(op, args, &columns, err);
    return rc;
}

static err_code_t conv_bf16_data(const op_t *op, const op_args_t *args,
                                 const void *dy, err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    void *w = cuda_room_at(args->scratch, conv->back_w_at);
    void *dx =
        conv->copies_x ? cuda_room_at(args->scratch, conv->dx_at) : args->dx;
    const void *const xwy[] = {dx, w, dy};
    err_code_t rc = conv_store_w(op, args, w, err);

    if (rc == ERR_OK)
        rc = conv_clear(op, args, &conv->x, dx, err);
    if (rc == ERR_OK)
        rc = cuda_conv_run(op, args, &conv->run, conv->run.plans.data, xwy,
                           conv->back_pad_at, err);
    if (rc == ERR_OK && conv->copies_x)
        rc = conv_load(op, args, &conv->x, dx, args->dx, NULL, err);
    return rc;
}

static err_code_t conv_bf16_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const cuda_conv_bf16_t *conv = op->state;
    void *copy = cuda_room_at(args->scratch, conv->dy_at);
    const void *dy = conv->copies_y ? copy : args->dy;
    err_code_t rc = ERR_OK;

    if (conv->copies_y)
        rc = conv_store(op, args, &conv->y, args->dy, copy, err);
    if (rc == ERR_OK)
        rc = conv_bf16_params(op, args, dy, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = conv_bf16_data(op, args, dy, err);
    return rc;
}

const op_kernel_t cuda_conv_bf16_kernel = {
    .open = conv_bf16_open,
    .close = conv_bf16_close,
    .forward = conv_bf16_forward,
    .backward = conv_bf16_backward,
};
