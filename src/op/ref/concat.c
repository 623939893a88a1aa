/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * concat and slice. With respect to the axis, a tensor is [outer, length,
 * inner]. The inputs of a concat are parts of y, one after the other along the
 * axis. The output of a slice is a part of x.
 */
#include <stdbool.h>

#include "op/op_desc.h"
#include "op/ref/ref.h"

typedef struct ref_part {
    op_type_t type;
    int64_t outer, inner;
    int64_t length;      /* of the whole tensor along the axis */
    int64_t start, size; /* of the part along the axis */
} ref_part_t;

static ref_part_t ref_part_of(const op_desc_t *whole, int axis, int64_t start,
                              int64_t size)
{
    ref_part_t part = {.type = whole->type,
                       .outer = 1,
                       .inner = 1,
                       .length = whole->dims[axis],
                       .start = start,
                       .size = size};

    for (int i = 0; i < axis; i++)
        part.outer *= whole->dims[i];
    for (int i = axis + 1; i < whole->ndim; i++)
        part.inner *= whole->dims[i];
    return part;
}

/* Copy the part from the whole tensor to a tensor of its own or, with [back],
 * from its own tensor to the whole. */
static void ref_part_copy(const ref_part_t *part, const void *from, void *to,
                          bool back)
{
    for (int64_t o = 0; o < part->outer; o++)
        for (int64_t k = 0; k < part->size; k++)
            for (int64_t i = 0; i < part->inner; i++) {
                int64_t whole =
                    (o * part->length + part->start + k) * part->inner + i;
                int64_t own = (o * part->size + k) * part->inner + i;

                if (back)
                    ref_put(part->type, to, whole,
                            ref_get(part->type, from, own));
                else
                    ref_put(part->type, to, own,
                            ref_get(part->type, from, whole));
            }
}

/* ---- concat -------------------------------------------------------------- */

static err_code_t ref_concat_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Input [k] as a part of y. Input 0 is x. */
static ref_part_t ref_concat_part(const op_t *op, int k)
{
    const op_config_t *config = &op->config;
    const int axis = config->view.axis;
    int64_t start = 0, size = config->in.dims[axis];

    for (int i = 0; i < k; i++) {
        start += size;
        size = config->other[i].dims[axis];
    }
    return ref_part_of(&op->out, axis, start, size);
}

static err_code_t ref_concat_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    (void)err;
    for (int k = 0; k <= op->config.others; k++) {
        ref_part_t part = ref_concat_part(op, k);

        ref_part_copy(&part, k == 0 ? args->x : args->other[k - 1], args->y,
                      true);
    }
    return ERR_OK;
}

static err_code_t ref_concat_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    for (int k = 0; k <= op->config.others; k++) {
        ref_part_t part = ref_concat_part(op, k);
        void *to = k > 0                ? args->dother[k - 1]
                   : op->config.need_dx ? args->dx
                                        : NULL;

        if (to != NULL)
            ref_part_copy(&part, args->dy, to, false);
    }
    return ERR_OK;
}

const op_kernel_t ref_concat_kernel = {
    .open = ref_concat_open,
    .forward = ref_concat_forward,
    .backward = ref_concat_backward,
};

/* ---- slice --------------------------------------------------------------- */

static ref_part_t ref_slice_part(const op_t *op)
{
    const op_view_t *view = &op->config.view;

    return ref_part_of(&op->config.in, view->axis, view->start, view->size);
}

static err_code_t ref_slice_forward(op_t *op, const op_args_t *args, err_t *err)
{
    ref_part_t part = ref_slice_part(op);

    (void)err;
    ref_part_copy(&part, args->x, args->y, false);
    return ERR_OK;
}

static err_code_t ref_slice_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    ref_part_t part = ref_slice_part(op);
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    if (!op->config.need_dx)
        return ERR_OK;
    for (int64_t i = 0; i < count; i++)
        ref_put(part.type, args->dx, i, 0);
    ref_part_copy(&part, args->dy, args->dx, true);
    return ERR_OK;
}

const op_kernel_t ref_slice_kernel = {
    .open = ref_concat_open,
    .forward = ref_slice_forward,
    .backward = ref_slice_backward,
};
