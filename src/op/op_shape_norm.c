/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of the sample norms, the rows on which they work, and the sums of
 * syncbatchnorm. */
#include <inttypes.h>

#include <math.h>

#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_shape.h"
#include "op/op_sync.h"

bool op_is_sample_norm(op_kind_t kind)
{
    return kind == OP_LAYERNORM || kind == OP_RMSNORM || kind == OP_GROUPNORM ||
           kind == OP_INSTANCENORM;
}

static bool norm_has_channels(op_kind_t kind)
{
    return kind == OP_GROUPNORM || kind == OP_INSTANCENORM;
}

static err_code_t norm_check_channels(const op_config_t *config, err_t *err)
{
    const op_desc_t *in = &config->in;
    int64_t groups = config->norm.groups;
    char text[OP_TEXT_MAX];

    op_desc_text(in, text);
    if (config->kind == OP_GROUPNORM &&
        (groups < 1 || in->dims[1] % groups != 0))
        return err_set(err, ERR_CONFIG,
                       "groupnorm on %s: the %" PRId64
                       " channels must be a multiple of groups, which is "
                       "%" PRId64,
                       text, in->dims[1], groups);
    if (config->kind == OP_INSTANCENORM && op_desc_space(in) < 2)
        return err_set(err, ERR_CONFIG,
                       "instancenorm on %s: a channel of one element has no "
                       "variance; use layernorm or groupnorm",
                       text);
    return ERR_OK;
}

err_code_t op_shape_norm(const op_config_t *config, op_desc_t *out, err_t *err)
{
    const op_desc_t *in = &config->in;
    const bool channels = norm_has_channels(config->kind);
    const int axis = config->norm.axis;
    err_code_t rc =
        op_check_input(config, 2, OP_DIMS_MAX,
                       channels ? "[N, channels, ...]" : "[N, ...]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    op_desc_text(in, text);
    if (!(config->epsilon > 0))
        return err_set(err, ERR_CONFIG,
                       "%s on %s: epsilon is %g, but must be positive",
                       op_kind_name(config->kind), text, config->epsilon);
    if (channels)
        rc = norm_check_channels(config, err);
    else if (axis < 1 || axis >= in->ndim)
        rc = err_set(err, ERR_CONFIG,
                     "%s on %s: there is no dimension %d to begin with (1 "
                     "to %d)",
                     op_kind_name(config->kind), text, axis, in->ndim - 1);
    if (rc == ERR_OK)
        op_desc_fill(out, in->type, in->ndim, in->dims);
    return rc;
}

op_rows_t op_norm_rows(const op_config_t *config)
{
    const op_desc_t *in = &config->in;
    int64_t elems = op_desc_elems(in);
    op_rows_t rows = {.rows = 1, .groups = 1, .space = 1};

    if (norm_has_channels(config->kind)) {
        rows.groups =
            config->kind == OP_GROUPNORM ? config->norm.groups : in->dims[1];
        rows.rows = in->dims[0] * rows.groups;
        rows.space = op_desc_space(in);
    } else {
        for (int i = 0; i < config->norm.axis; i++)
            rows.rows *= in->dims[i];
    }
    rows.length = elems / rows.rows;
    return rows;
}

int op_params_norm(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    const op_desc_t *in = &config->in;
    const bool channels = norm_has_channels(config->kind);
    const int axis = channels ? 1 : config->norm.axis;
    const int ndim = channels ? 1 : in->ndim - axis;
    int count = config->norm.affine;

    if (count > 0 && config->bias && config->kind != OP_RMSNORM)
        count++;
    for (int i = 0; i < count; i++)
        op_desc_fill(&out[i], in->type, ndim, &in->dims[axis]);
    return count;
}

err_code_t op_reduce_small(const op_args_t *args, double *sums, size_t count,
                           err_t *err)
{
    return args->reduce.small == NULL
               ? ERR_OK
               : args->reduce.small(args->reduce.context, sums, count, err);
}

void op_sync_moments(double *kept, int64_t C, int64_t c, double epsilon)
{
    const double mean = kept[c] / kept[2 * C];
    const double var = kept[C + c] / kept[2 * C] - mean * mean;

    kept[c] = mean;
    kept[C + c] = 1 / sqrt((var > 0 ? var : 0) + epsilon);
}
