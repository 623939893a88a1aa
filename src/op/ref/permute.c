/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* permute: y is x with the dimensions of a sample in another order
 * (op_view_t.dims). */
#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_permute_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Index in x of element [at] of y. */
static int64_t ref_permute_source(const op_t *op, int64_t at)
{
    const op_desc_t *in = &op->config.in, *out = &op->out;
    int64_t index[OP_DIMS_MAX] = {0}, source = 0;

    for (int d = out->ndim - 1; d >= 0; d--) {
        index[d == 0 ? 0 : op->config.view.dims[d - 1]] = at % out->dims[d];
        at /= out->dims[d];
    }
    for (int d = 0; d < in->ndim; d++)
        source = source * in->dims[d] + index[d];
    return source;
}

static err_code_t ref_permute_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++)
        ref_put(type, args->y, i,
                ref_get(type, args->x, ref_permute_source(op, i)));
    return ERR_OK;
}

static err_code_t ref_permute_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count && op->config.need_dx; i++)
        ref_put(type, args->dx, ref_permute_source(op, i),
                ref_get(type, args->dy, i));
    return ERR_OK;
}

const op_kernel_t ref_permute_kernel = {
    .open = ref_permute_open,
    .forward = ref_permute_forward,
    .backward = ref_permute_backward,
};
