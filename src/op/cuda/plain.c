/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/plain.h"

#include "op/cuda/channels.h"
#include "op/cuda/conv_plan.h"
#include "op/cuda/cuda.h"
#include "op/cuda/room.h"

/* Input k: 0 is x, k is other[k - 1]. Offsets of the copies in scratch. */
typedef struct cuda_plain {
    op_t *inner;
    size_t in_at[OP_INPUTS_MAX], gradient_at[OP_INPUTS_MAX];
    size_t y_at, dy_at; /* if y has the layout */
    size_t inner_at;    /* scratch of [inner] */
} cuda_plain_t;

/* The kernels of plain tensors. */
#define cuda_none_kernel (*(const op_kernel_t *)NULL)
static const op_kernel_t *const own[] = {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, cuda, ...) \
    [OP_##kind] = &cuda_##cuda##_kernel,
#include "op/op_table.inc"
#undef OP
};

static const op_desc_t *input(const op_config_t *config, int k)
{
    return k == 0 ? &config->in : &config->other[k - 1];
}

static bool has_layout(const op_config_t *config)
{
    bool found = false;

    for (int k = 0; k <= config->others; k++)
        found = found || input(config, k)->layout != NULL;
    return found;
}

/* Does y have the layout of x? */
static bool keeps_layout(const op_t *op)
{
    return op->config.in.layout != NULL &&
           op->config.y_stored_as == OP_BFLOAT16 &&
           op->backend->bf16_use[op->config.kind] == OP_BF16_KEPT;
}

/* Do all inputs and y have the layout? */
static bool is_all_layout(const op_t *op)
{
    bool all = keeps_layout(op);

    for (int k = 1; k <= op->config.others; k++)
        all = all && input(&op->config, k)->layout != NULL;
    return all;
}

/* Does the kind's own kernel work on these tensors? */
static bool knows_layout(const op_t *op)
{
    switch (op->config.kind) {
    case OP_CONV2D:
        return cuda_conv_is_bf16(&op->config);
    case OP_FLATTEN:
    case OP_RESHAPE:
        return true;
    case OP_CONCAT:
        return is_all_layout(op) && op->config.view.axis == 1;
    default: /* those that keep it */
        return is_all_layout(op);
    }
}

/* ---- opening ------------------------------------------------------------- */

static void make_plain(op_desc_t *desc)
{
    const op_desc_t stored = *desc;

    if (desc->layout != NULL)
        op_desc_fill(desc, stored.type, stored.ndim, stored.dims);
}

static void plain_place(op_t *op)
{
    cuda_plain_t *plain = op->state;
    size_t end = 0;

    for (int k = 0; k <= op->config.others; k++)
        if (input(&op->config, k)->layout != NULL) {
            const int64_t elems = op_desc_elems(input(&op->config, k));

            plain->in_at[k] = cuda_room_floats(&end, elems);
            plain->gradient_at[k] = cuda_room_floats(&end, elems);
        }
    if (keeps_layout(op)) {
        plain->y_at = cuda_room_floats(&end, op_desc_elems(&op->out));
        plain->dy_at = cuda_room_floats(&end, op_desc_elems(&op->out));
    }
    plain->inner_at = cuda_room_take(&end, plain->inner->scratch_bytes);
    op->scratch_bytes = end;
}

/* Open the op inside as op_open does, which the plugin has not. *out is set
 * even if this fails. */
static err_code_t inner_open(const op_t *op, op_t **out, err_t *err)
{
    op_t *inner;
    err_code_t rc = mem_new(op_t, 1, "an op on copies", &inner, err);

    if (rc != ERR_OK)
        return rc;
    *out = inner;
    *inner = (op_t){.backend = op->backend,
                    .kernel = own[op->config.kind],
                    .dev = op->dev,
                    .config = op->config,
                    .flops = op->flops,
                    .reads_x = true};
    inner->config.y_stored_as = OP_FLOAT32;
    make_plain(&inner->config.in);
    for (int k = 0; k < inner->config.others; k++)
        make_plain(&inner->config.other[k]);
    inner->grad_in = inner->config.in;
    rc = op_shape(&inner->config, &inner->out, err);
    inner->grad_out = inner->out;
    if (rc == ERR_OK && inner->kernel->open != NULL)
        rc = inner->kernel->open(inner, err);
    return rc;
}

static void inner_close(op_t *inner)
{
    if (inner != NULL && inner->kernel->close != NULL)
        inner->kernel->close(inner);
    mem_free(inner);
}

static err_code_t plain_open(op_t *op, err_t *err)
{
    cuda_plain_t *plain;
    err_code_t rc;

    if (!has_layout(&op->config) || knows_layout(op)) {
        if (keeps_layout(op))
            cuda_channels_set(&op->out);
        op->kernel = own[op->config.kind];
        return op->kernel->open != NULL ? op->kernel->open(op, err) : ERR_OK;
    }
    rc = mem_new(cuda_plain_t, 1, "an op on copies", &plain, err);
    if (rc != ERR_OK)
        return rc;
    op->state = plain;
    rc = inner_open(op, &plain->inner, err);
    if (rc != ERR_OK)
        return rc;
    if (keeps_layout(op))
        cuda_channels_set(&op->out);
    plain_place(op);
    op->workspace_bytes = plain->inner->workspace_bytes;
    op->adds = plain->inner->adds;
    op->reads_x = plain->inner->reads_x;
    op->reads_y = plain->inner->reads_y;
    return ERR_OK;
}

static void plain_close(op_t *op)
{
    cuda_plain_t *plain = op->state;

    if (plain == NULL)
        return;
    inner_close(plain->inner);
    mem_free(plain);
}

/* ---- running ------------------------------------------------------------- */

static err_code_t plain_read(const op_t *op, op_args_t *args, int k, err_t *err)
{
    const cuda_plain_t *plain = op->state;
    const op_desc_t *desc = input(&op->config, k);
    const void **x = k == 0 ? &args->x : &args->other[k - 1];
    void *copy = cuda_room_at(args->scratch, plain->in_at[k]);
    const void *from = *x;

    if (desc->layout == NULL || from == NULL)
        return ERR_OK;
    *x = copy;
    return cuda_channels_load(op, args, desc, from, copy, err);
}

static err_code_t plain_read_all(const op_t *op, op_args_t *args, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        rc = plain_read(op, args, k, err);
    return rc;
}

static err_code_t plain_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_plain_t *plain = op->state;
    op_args_t copies = *args;
    err_code_t rc = plain_read_all(op, &copies, err);

    if (keeps_layout(op))
        copies.y = cuda_room_at(args->scratch, plain->y_at);
    copies.scratch = cuda_room_at(args->scratch, plain->inner_at);
    if (rc == ERR_OK)
        rc = plain->inner->kernel->forward(plain->inner, &copies, err);
    if (rc == ERR_OK && keeps_layout(op))
        rc = cuda_channels_store(op, args, &op->out, copies.y, args->y, err);
    return rc;
}

/* Copy y, if it is read, and dy. */
static err_code_t plain_read_y(const op_t *op, op_args_t *args, err_t *err)
{
    const cuda_plain_t *plain = op->state;
    void *y = cuda_room_at(args->scratch, plain->y_at);
    void *dy = cuda_room_at(args->scratch, plain->dy_at);
    err_code_t rc = ERR_OK;

    if (!keeps_layout(op))
        return ERR_OK;
    if (op->reads_y)
        rc = cuda_channels_load(op, args, &op->out, args->y, y, err);
    if (rc == ERR_OK)
        rc = cuda_channels_load(op, args, &op->out, args->dy, dy, err);
    args->y = op->reads_y ? y : NULL;
    args->dy = dy;
    return rc;
}

/* Copy gradient [k] to the caller's. */
static err_code_t plain_write(const op_t *op, const op_args_t *args,
                              const op_args_t *copies, int k, err_t *err)
{
    const op_desc_t *desc = input(&op->config, k);
    void *to = k == 0 ? args->dx : args->dother[k - 1];
    const void *from = k == 0 ? copies->dx : copies->dother[k - 1];

    if (desc->layout == NULL || to == NULL)
        return ERR_OK;
    return cuda_channels_store(op, args, desc, from, to, err);
}

static void plain_point(const op_t *op, op_args_t *args)
{
    const cuda_plain_t *plain = op->state;

    for (int k = 0; k <= op->config.others; k++) {
        void **to = k == 0 ? &args->dx : &args->dother[k - 1];

        if (input(&op->config, k)->layout != NULL && *to != NULL)
            *to = cuda_room_at(args->scratch, plain->gradient_at[k]);
    }
}

static err_code_t plain_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_plain_t *plain = op->state;
    op_args_t copies = *args;
    err_code_t rc = ERR_OK;

    if (op->reads_x)
        rc = plain_read_all(op, &copies, err);
    if (rc == ERR_OK)
        rc = plain_read_y(op, &copies, err);
    plain_point(op, &copies);
    copies.scratch = cuda_room_at(args->scratch, plain->inner_at);
    if (rc == ERR_OK)
        rc = plain->inner->kernel->backward(plain->inner, &copies, err);
    for (int k = op->config.need_dx ? 0 : 1;
         k <= op->config.others && rc == ERR_OK; k++)
        rc = plain_write(op, args, &copies, k, err);
    return rc;
}

const op_kernel_t cuda_plain_kernel = {
    .open = plain_open,
    .close = plain_close,
    .forward = plain_forward,
    .backward = plain_backward,
};
