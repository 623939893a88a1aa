/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shapes of the outputs and parameters of ops. All are pure functions of the
 * configuration, shared by all backends, so that every backend accepts the same
 * models.
 */
#include <inttypes.h>
#include <math.h>

#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_shape.h"

/* ---- one function per kind ---------------------------------------------- */

err_code_t op_shape_linear(const op_config_t *config, op_desc_t *out,
                           err_t *err)
{
    err_code_t rc =
        op_check_input(config, 2, OP_DIMS_MAX, "[N, features]", err);
    char text[OP_TEXT_MAX];
    op_desc_t shape;

    if (rc != ERR_OK)
        return rc;
    if (config->out < 1)
        return err_set(err, ERR_CONFIG,
                       "linear on %s: out is %" PRId64
                       ", but must be at least 1",
                       op_desc_text(&config->in, text), config->out);
    shape = config->in;
    if (!config->last)
        shape.ndim = 2;
    shape.dims[shape.ndim - 1] = config->out;
    op_desc_fill(out, shape.type, shape.ndim, shape.dims);
    return ERR_OK;
}

/* relu, batchnorm, dropout: the shape of the input. */
err_code_t op_shape_same(const op_config_t *config, op_desc_t *out, err_t *err)
{
    bool norm =
        config->kind == OP_BATCHNORM || config->kind == OP_SYNCBATCHNORM;
    err_code_t rc = op_check_input(config, norm ? 2 : 1, OP_DIMS_MAX,
                                   "[N, channels, ...]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    if (norm && !(config->epsilon > 0))
        return err_set(err, ERR_CONFIG,
                       "%s on %s: epsilon is %g, but must be positive",
                       op_kind_name(config->kind),
                       op_desc_text(&config->in, text), config->epsilon);
    if (config->kind == OP_BATCHNORM && config->others > 0)
        return op_shape_combine(config, out, err);
    if (config->kind == OP_DROPOUT && !(config->rate >= 0 && config->rate < 1))
        return err_set(err, ERR_CONFIG,
                       "dropout on %s: the rate is %g, but must be at least 0 "
                       "and less than 1",
                       op_desc_text(&config->in, text), config->rate);
    op_desc_fill(out, config->in.type, config->in.ndim, config->in.dims);
    return ERR_OK;
}

err_code_t op_shape_activation(const op_config_t *config, op_desc_t *out,
                               err_t *err)
{
    const bool softplus = config->kind == OP_SOFTPLUS;
    err_code_t rc = op_check_input(config, 1, OP_DIMS_MAX, "[N, ...]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    if (config->kind == OP_SCALE && !isfinite(config->alpha))
        return err_set(err, ERR_CONFIG, "scale on %s: the factor is %g",
                       op_desc_text(&config->in, text), config->alpha);
    if (config->kind != OP_SCALE &&
        (!(config->alpha >= 0) || (softplus && config->alpha == 0)))
        return err_set(
            err, ERR_CONFIG, "%s on %s: the constant is %g, but must be %s",
            op_kind_name(config->kind), op_desc_text(&config->in, text),
            config->alpha, softplus ? "positive" : "at least 0");
    op_desc_fill(out, config->in.type, config->in.ndim, config->in.dims);
    return ERR_OK;
}

err_code_t op_shape_flatten(const op_config_t *config, op_desc_t *out,
                            err_t *err)
{
    err_code_t rc = op_check_input(config, 1, OP_DIMS_MAX, "[N, ...]", err);

    if (rc != ERR_OK)
        return rc;
    op_desc_fill(out, config->in.type, 2,
                 (int64_t[]){config->in.dims[0], op_desc_sample(&config->in)});
    return ERR_OK;
}

err_code_t op_shape_loss(const op_config_t *config, op_desc_t *out, err_t *err)
{
    bool classes = config->kind == OP_CROSS_ENTROPY ||
                   config->kind == OP_CROSS_ENTROPY_SOFT;
    err_code_t rc =
        op_check_input(config, classes ? 2 : 1, OP_DIMS_MAX,
                       classes ? "[N, classes, ...]" : "[N, ...]", err);

    if (rc != ERR_OK)
        return rc;
    if (classes &&
        (config->loss.axis < 0 || config->loss.axis >= config->in.ndim))
        return err_set(err, ERR_CONFIG,
                       "cross_entropy: its input has %d dimensions, but the "
                       "classes lie along number %d",
                       config->in.ndim, config->loss.axis);
    if (classes &&
        !(config->loss.smoothing >= 0 && config->loss.smoothing <= 1))
        return err_set(err, ERR_CONFIG,
                       "cross_entropy: the smoothing is %g, but must be from 0 "
                       "to 1",
                       config->loss.smoothing);
    if (config->kind == OP_HUBER && !(config->alpha > 0))
        return err_set(
            err, ERR_CONFIG,
            "huber: the difference from which on it is linear is %g, "
            "but must be positive",
            config->alpha);
    op_desc_fill(out, config->in.type, 1, (int64_t[]){1});
    return ERR_OK;
}

/* ---- parameters; the functions return their number ----------------------- */

int op_params_linear(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->in.type, 2,
                 (int64_t[]){config->out, op_linear_features(config)});
    if (config->bias)
        op_desc_fill(&out[1], config->in.type, 1, &config->out);
    return config->bias ? 2 : 1;
}

int op_params_batchnorm(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    if (config->norm.bare)
        return 0;
    op_desc_fill(&out[0], config->in.type, 1, &config->in.dims[1]);
    op_desc_fill(&out[1], config->in.type, 1, &config->in.dims[1]);
    return 2;
}

int op_params_position(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->in.type, config->in.ndim - 1,
                 config->in.dims + 1);
    return 1;
}

int op_params_embedding(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    op_desc_fill(&out[0], config->embedding.type, 2,
                 (int64_t[]){config->embedding.rows, config->out});
    return 1;
}

int op_params_prelu(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    const int64_t slopes = config->channels ? config->in.dims[1] : 1;

    op_desc_fill(&out[0], config->in.type, 1, &slopes);
    return 1;
}
