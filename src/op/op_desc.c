/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Functions of a description or a configuration, and the check that every input
 * must pass. Pure. */
#include <inttypes.h>
#include <stdio.h>

#include "op/op_desc.h"
#include "op/op_geometry.h"

char *op_desc_text(const op_desc_t *desc, char out[OP_TEXT_MAX])
{
    int length = snprintf(out, OP_TEXT_MAX, "[");

    for (int i = 0; i < desc->ndim; i++)
        length += snprintf(out + length, (size_t)(OP_TEXT_MAX - length),
                           "%s%" PRId64, i > 0 ? ", " : "", desc->dims[i]);
    snprintf(out + length, (size_t)(OP_TEXT_MAX - length), "]");
    return out;
}

/* Product of the dimensions from number [first] on. */
static int64_t dims_product(const op_desc_t *desc, int first)
{
    int64_t product = 1;

    for (int i = first; i < desc->ndim; i++)
        product *= desc->dims[i];
    return product;
}

int64_t op_desc_elems(const op_desc_t *desc)
{
    return dims_product(desc, 0);
}

int64_t op_desc_sample(const op_desc_t *desc)
{
    return dims_product(desc, 1);
}

int64_t op_desc_space(const op_desc_t *desc)
{
    return dims_product(desc, 2);
}

int64_t op_linear_features(const op_config_t *config)
{
    return config->last ? config->in.dims[config->in.ndim - 1]
                        : op_desc_sample(&config->in);
}

int64_t op_linear_rows(const op_config_t *config)
{
    return op_desc_elems(&config->in) / op_linear_features(config);
}

size_t op_type_bytes(op_type_t type)
{
    if (type == OP_BFLOAT16)
        return 2;
    return type == OP_FLOAT32 || type == OP_INT32 ? 4 : 8;
}

op_type_t op_desc_storage(const op_desc_t *desc)
{
    return op_stored_bf16(desc) ? OP_BFLOAT16 : desc->type;
}

size_t op_desc_stored_elems(const op_desc_t *desc)
{
    return desc->bytes / op_type_bytes(op_desc_storage(desc));
}

op_type_t op_number_type(const op_config_t *config)
{
    return config->kind == OP_EMBEDDING ? config->embedding.type
                                        : config->in.type;
}

void op_desc_fill(op_desc_t *desc, op_type_t type, int ndim,
                  const int64_t *dims)
{
    *desc = (op_desc_t){.type = type, .ndim = ndim};
    for (int i = 0; i < ndim; i++)
        desc->dims[i] = dims[i];
    desc->bytes = (size_t)op_desc_elems(desc) * op_type_bytes(type);
}

static err_code_t check_type(const op_config_t *config, const char *text,
                             err_t *err)
{
    const bool tokens = config->kind == OP_EMBEDDING;
    const op_type_t type = config->in.type;

    if (tokens ? type == OP_INT32 : type == OP_FLOAT32 || type == OP_FLOAT64)
        return ERR_OK;
    if (tokens)
        return err_set(err, ERR_CONFIG,
                       "embedding takes tokens, which are whole numbers, but "
                       "its input %s holds real ones; let it read the model's "
                       "input",
                       text);
    return err_set(err, ERR_CONFIG,
                   "%s takes an input of float32 or float64, but its input %s "
                   "holds integers",
                   op_kind_name(config->kind), text);
}

err_code_t op_check_input(const op_config_t *config, int ndim_min, int ndim_max,
                          const char *expected, err_t *err)
{
    const op_desc_t *in = &config->in;
    char text[OP_TEXT_MAX];
    err_code_t rc;

    if (in->ndim < 1 || in->ndim > OP_DIMS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s takes an input of 1 to %d dimensions, not %d",
                       op_kind_name(config->kind), OP_DIMS_MAX, in->ndim);
    op_desc_text(in, text);
    rc = check_type(config, text, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < in->ndim; i++)
        if (in->dims[i] < 1)
            return err_set(err, ERR_CONFIG,
                           "%s got the input %s, which has an empty dimension",
                           op_kind_name(config->kind), text);
    if (in->ndim < ndim_min || in->ndim > ndim_max)
        return err_set(err, ERR_CONFIG,
                       "%s takes an input of shape %s, but its input is %s",
                       op_kind_name(config->kind), expected, text);
    return ERR_OK;
}
