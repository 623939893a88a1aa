/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/shape.h"

#include <inttypes.h>
#include <stdio.h>

#include "nn/fail.h"

int64_t nn_sample_elems(const op_desc_t *desc)
{
    int64_t elems = 1;

    for (int i = 1; i < desc->ndim; i++)
        elems *= desc->dims[i];
    return elems;
}

char *nn_shape_format(const op_desc_t *desc, char out[NN_SHAPE_TEXT])
{
    size_t used = 0;

    for (int i = 1; i < desc->ndim; i++)
        used += (size_t)snprintf(out + used, NN_SHAPE_TEXT - used, "%s%" PRId64,
                                 i == 1 ? "[" : ", ", desc->dims[i]);
    snprintf(out + used, NN_SHAPE_TEXT - used, used == 0 ? "[]" : "]");
    return out;
}

void nn_desc_plain(op_desc_t *desc, int64_t batch, int ndim,
                   const int64_t *dims)
{
    *desc = (op_desc_t){.type = OP_FLOAT32, .ndim = ndim + 1};
    desc->dims[0] = batch;
    for (int i = 0; i < ndim; i++)
        desc->dims[i + 1] = dims[i];
    desc->bytes = sizeof(float) * (size_t)(batch * nn_sample_elems(desc));
}

err_code_t nn_space(const opt_ints_t *ints, const op_desc_t *in,
                    const tree_t *tree, const char *key,
                    int64_t out[OP_SPACE_MAX], err_t *err)
{
    const tree_t *node = tree_get(tree, key);
    const int space =
        in->ndim < 3 || in->ndim > 2 + OP_SPACE_MAX
            ? OP_SPACE_MAX - 1 /* op_shape reports the wrong dimensions later */
            : in->ndim - 2;

    if (ints->count != 1 && ints->count != space)
        return nn_fail_at(
            tree_place(node == NULL ? tree : node), err,
            "%s takes one number, or one for each of the %d dimensions after "
            "the channels, not %d numbers",
            key, space, ints->count);
    for (int i = 0; i < space; i++)
        out[i] = ints->items[ints->count == 1 ? 0 : i];
    return ERR_OK;
}
