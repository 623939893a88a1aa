/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_broadcast.h"
#include "op/op_desc.h"

#include <inttypes.h>

static const op_desc_t *broadcast_input(const op_config_t *config, int k)
{
    return k == 0 ? &config->in : &config->other[k - 1];
}

/* Size of [desc] in dimension [i] of a result with [ndim] dimensions; 1 if
 * [desc] has fewer dimensions. Dimension 0 is the batch of both. */
static int64_t broadcast_size(const op_desc_t *desc, int i, int ndim)
{
    const int at = i == 0 ? 0 : i - (ndim - desc->ndim);

    return i > 0 && at < 1 ? 1 : desc->dims[at];
}

/* Compute the result's dimensions and return their number. *bad is the first
 * input that does not broadcast with the inputs before it; 0: there is none. */
static int broadcast_dims(const op_config_t *config, int64_t dims[OP_DIMS_MAX],
                          int *bad)
{
    int ndim = config->in.ndim;

    *bad = 0;
    for (int k = 1; k <= config->others; k++)
        if (broadcast_input(config, k)->ndim > ndim)
            ndim = broadcast_input(config, k)->ndim;
    for (int i = 0; i < ndim; i++)
        dims[i] = 1;
    for (int k = 0; k <= config->others; k++)
        for (int i = 0; i < ndim; i++) {
            const op_desc_t *desc = broadcast_input(config, k);
            const int64_t size = broadcast_size(desc, i, ndim);

            if (desc->type != config->in.type || size < 1 ||
                (size != dims[i] && dims[i] != 1 && size != 1) ||
                (i == 0 && size != config->in.dims[0]))
                *bad = *bad == 0 ? k : *bad;
            else if (size != 1)
                dims[i] = size;
        }
    return ndim;
}

bool op_broadcast_fits(const op_config_t *config)
{
    int64_t dims[OP_DIMS_MAX];
    bool differ = false;
    int bad, ndim;

    ndim = broadcast_dims(config, dims, &bad);
    for (int k = 0; k <= config->others; k++)
        for (int i = 0; i < ndim; i++)
            differ =
                differ || broadcast_input(config, k)->ndim != ndim ||
                broadcast_size(broadcast_input(config, k), i, ndim) != dims[i];
    return differ && bad == 0;
}

/* Return the first input that does not broadcast with input [bad]; 0 if there
 * is none. */
static int broadcast_rival(const op_config_t *config, int bad, int ndim)
{
    for (int k = 0; k < bad; k++)
        for (int i = 0; i < ndim; i++) {
            const int64_t a =
                broadcast_size(broadcast_input(config, k), i, ndim);
            const int64_t b =
                broadcast_size(broadcast_input(config, bad), i, ndim);

            if (a != b && a != 1 && b != 1)
                return k;
        }
    return 0;
}

err_code_t op_shape_broadcast(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    err_code_t rc = op_check_input(config, 2, OP_DIMS_MAX, "[N, ...]", err);
    char first[OP_TEXT_MAX], other[OP_TEXT_MAX];
    int64_t dims[OP_DIMS_MAX];
    int bad, rival, ndim;

    if (rc != ERR_OK)
        return rc;
    if (config->others < 1 || config->others >= OP_INPUTS_MAX)
        return err_set(
            err, ERR_CONFIG, "%s takes 2 to %d inputs, but it got %d",
            op_kind_name(config->kind), OP_INPUTS_MAX, config->others + 1);
    ndim = broadcast_dims(config, dims, &bad);
    rival = broadcast_rival(config, bad, ndim);
    if (bad != 0)
        return err_set(
            err, ERR_CONFIG,
            "%s takes inputs whose sizes, counted from the last dimension, are "
            "equal or 1, but its input %d is %s and its input %d is %s",
            op_kind_name(config->kind), rival + 1,
            op_desc_text(broadcast_input(config, rival), first), bad + 1,
            op_desc_text(broadcast_input(config, bad), other));
    op_desc_fill(out, config->in.type, ndim, dims);
    return ERR_OK;
}

/* Can a dimension of [size], with stride[k] in input k, be merged with the last
 * dimension of [broadcast]? */
static bool broadcast_joins(const op_broadcast_t *broadcast, int inputs,
                            int64_t size, const int64_t *stride)
{
    const int last = broadcast->ndim - 1;

    for (int k = 0; k < inputs && last >= 0; k++)
        if (broadcast->stride[k][last] != stride[k] * size)
            return false;
    return last >= 0;
}

op_broadcast_t op_broadcast_of(const op_config_t *config)
{
    const int inputs = config->others + 1;
    int64_t dims[OP_DIMS_MAX], steps[OP_INPUTS_MAX][OP_DIMS_MAX];
    op_broadcast_t broadcast = {.ndim = 0};
    int bad, ndim = broadcast_dims(config, dims, &bad);

    for (int k = 0; k < inputs; k++) {
        int64_t step = 1;

        for (int i = ndim - 1; i >= 0; i--) {
            const int64_t size =
                broadcast_size(broadcast_input(config, k), i, ndim);

            steps[k][i] = size == 1 ? 0 : step;
            step *= size;
        }
    }
    for (int i = 0; i < ndim; i++) {
        int64_t stride[OP_INPUTS_MAX];

        for (int k = 0; k < inputs; k++)
            stride[k] = steps[k][i];
        if (dims[i] == 1)
            continue;
        if (broadcast_joins(&broadcast, inputs, dims[i], stride))
            broadcast.dims[broadcast.ndim - 1] *= dims[i];
        else
            broadcast.dims[broadcast.ndim++] = dims[i];
        for (int k = 0; k < inputs; k++)
            broadcast.stride[k][broadcast.ndim - 1] = stride[k];
    }
    if (broadcast.ndim == 0)
        broadcast.dims[broadcast.ndim++] = 1;
    return broadcast;
}

/* ---- matmul -------------------------------------------------------------- */

op_matmul_t op_matmul_of(const op_config_t *config)
{
    const op_desc_t *a = &config->in, *b = &config->other[0];
    const int row = a->ndim - 2, column = a->ndim - 1;
    const bool transposed = config->transpose.a;
    op_matmul_t m = {.batch = 1,
                     .M = a->dims[transposed ? column : row],
                     .K = a->dims[transposed ? row : column],
                     .N = b->dims[config->transpose.b ? row : column]};

    for (int i = 0; i < row; i++)
        m.batch *= a->dims[i];
    return m;
}

err_code_t op_shape_matmul(const op_config_t *config, op_desc_t *out,
                           err_t *err)
{
    const op_desc_t *a = &config->in, *b = &config->other[0];
    err_code_t rc =
        op_check_input(config, 3, OP_DIMS_MAX, "[N, ..., rows, columns]", err);
    char first[OP_TEXT_MAX], second[OP_TEXT_MAX];
    op_desc_t shape = *a;
    op_matmul_t m;
    bool fits;

    if (rc != ERR_OK)
        return rc;
    if (config->others != 1)
        return err_set(err, ERR_CONFIG, "matmul takes 2 inputs, but it got %d",
                       config->others + 1);
    fits = a->ndim == b->ndim && a->type == b->type;
    for (int i = 0; i < a->ndim && fits; i++)
        fits =
            b->dims[i] >= 1 && (i >= a->ndim - 2 || a->dims[i] == b->dims[i]);
    m = op_matmul_of(config);
    if (!fits || b->dims[a->ndim - (config->transpose.b ? 1 : 2)] != m.K)
        return err_set(
            err, ERR_CONFIG,
            "matmul: its inputs %s%s and %s%s do not fit: columns of the first "
            "must be rows of the second, and the other dimensions equal",
            op_desc_text(a, first), config->transpose.a ? " (transposed)" : "",
            op_desc_text(b, second),
            config->transpose.b ? " (transposed)" : "");
    shape.dims[a->ndim - 2] = m.M;
    shape.dims[a->ndim - 1] = m.N;
    op_desc_fill(out, a->type, a->ndim, shape.dims);
    return ERR_OK;
}
