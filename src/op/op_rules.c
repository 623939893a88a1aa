/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The kinds of ops: name, shape of the output, parameters, FLOPs. */
#include "op/op_attention.h"
#include "op/op_broadcast.h"
#include "op/op_desc.h"
#include "op/op_shape.h"

typedef struct op_rule {
    const char *name;
    err_code_t (*shape)(const op_config_t *config, op_desc_t *out, err_t *err);
    int (*params)(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
    double flops; /* FLOPs per element of x */
} op_rule_t;

#define OP(kind, name, shape, params, flops, ...) \
    [OP_##kind] = {name, shape, params, flops},
static const op_rule_t op_rules[OP_KINDS] = {
    [OP_NONE] = {.name = "none"},
#include "op/op_table.inc"
};
#undef OP

const char *op_kind_name(op_kind_t kind)
{
    return op_rules[kind].name;
}

double op_kind_flops(op_kind_t kind)
{
    return op_rules[kind].flops;
}

err_code_t op_shape(const op_config_t *config, op_desc_t *out, err_t *err)
{
    if (config->kind <= OP_NONE || config->kind >= OP_KINDS)
        return err_set(err, ERR_CONFIG, "there is no op of kind %d",
                       (int)config->kind);
    return op_rules[config->kind].shape(config, out, err);
}

err_code_t op_params(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX],
                     int *count, err_t *err)
{
    op_desc_t shape;
    err_code_t rc = op_shape(config, &shape, err);

    if (rc != ERR_OK)
        return rc;
    *count = 0;
    if (op_rules[config->kind].params != NULL)
        *count = op_rules[config->kind].params(config, out);
    return ERR_OK;
}
