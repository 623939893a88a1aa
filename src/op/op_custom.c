/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_custom.h"
#include "op/op_desc.h"
#include "op/op_shape.h"

#include <string.h>

_Static_assert(CDDP_DIMS_MAX == OP_DIMS_MAX &&
                   CDDP_INPUTS_MAX == OP_INPUTS_MAX &&
                   CDDP_PARAMS_MAX == OP_PARAMS_MAX &&
                   CDDP_OPTIONS_MAX == OP_CUSTOM_OPTIONS,
               "plugins and ops count alike");

/* Maximum elements of a tensor. A larger number is an error of the plugin. */
#define ELEMS_LIMIT 0x1p40

/* Convert the result of a plugin's function to an error. */
static err_code_t custom_answer(const op_config_t *config, cddp_code_t code,
                                const cddp_error_t *error, err_t *err)
{
    if (code == CDDP_OK)
        return ERR_OK;
    return err_set(err, (err_code_t)code, "%s: %s", config->custom->name,
                   error->text[0] != '\0' ? error->text
                                          : "refused without a reason");
}

static void shape_of(const op_desc_t *desc, cddp_shape_t *out)
{
    out->ndim = desc->ndim;
    memcpy(out->dims, desc->dims, sizeof out->dims);
}

static bool shape_possible(const cddp_shape_t *shape)
{
    double elems = 1;

    for (int i = 0; i < shape->ndim && i < CDDP_DIMS_MAX; i++) {
        if (shape->dims[i] < 1)
            return false;
        elems *= (double)shape->dims[i];
    }
    return shape->ndim >= 1 && shape->ndim <= CDDP_DIMS_MAX &&
           elems <= ELEMS_LIMIT;
}

err_code_t op_custom_shapes(const op_config_t *config, cddp_shapes_t *out,
                            err_t *err)
{
    const cddp_layer_t *custom = config->custom;
    cddp_error_t error = {.culprit = -1};
    err_code_t rc;

    *out = (cddp_shapes_t){.options = config->custom_options,
                           .inputs = 1 + config->others};
    shape_of(&config->in, &out->in[0]);
    for (int k = 0; k < config->others; k++)
        shape_of(&config->other[k], &out->in[k + 1]);
    rc = custom_answer(config, custom->shape(out, &error), &error, err);
    if (rc != ERR_OK)
        return rc;
    if (!shape_possible(&out->out) || out->out.dims[0] != config->in.dims[0])
        return err_set(err, ERR_CONFIG,
                       "%s: the plugin's shape function gives an output of %d "
                       "dimensions that is impossible, or of another batch "
                       "than its input",
                       custom->name, out->out.ndim);
    if (out->params < 0 || out->params > CDDP_PARAMS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s: the plugin's shape function gives %d parameters, "
                       "but 0 to %d are possible",
                       custom->name, out->params, CDDP_PARAMS_MAX);
    for (int i = 0; i < out->params; i++)
        if (!shape_possible(&out->param[i]) || custom->params[i].name == NULL)
            return err_set(err, ERR_CONFIG,
                           "%s: parameter %d of the plugin has an impossible "
                           "shape or no name",
                           custom->name, i);
    return ERR_OK;
}

err_code_t op_shape_custom(const op_config_t *config, op_desc_t *out,
                           err_t *err)
{
    cddp_shapes_t shapes;
    err_code_t rc;

    if (config->in.type != OP_FLOAT32)
        return err_set(err, ERR_CONFIG, "%s: plugins work in float32 only",
                       config->custom->name);
    rc = op_custom_shapes(config, &shapes, err);
    if (rc == ERR_OK)
        op_desc_fill(out, OP_FLOAT32, shapes.out.ndim, shapes.out.dims);
    return rc;
}

int op_params_custom(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    cddp_shapes_t shapes;

    if (op_custom_shapes(config, &shapes, NULL) != ERR_OK)
        return 0; /* op_shape has reported the error */
    for (int i = 0; i < shapes.params; i++)
        op_desc_fill(&out[i], OP_FLOAT32, shapes.param[i].ndim,
                     shapes.param[i].dims);
    return shapes.params;
}

static cddp_call_t call_of(const op_t *op, const cddp_shapes_t *shapes,
                           const float *const *x, const op_args_t *args)
{
    cddp_call_t call = {.shapes = shapes,
                        .training = op->config.training,
                        .threads = op->config.threads,
                        .y = args->y,
                        .workspace = args->workspace};

    for (int k = 0; k < shapes->inputs; k++)
        call.x[k] = x[k];
    for (int i = 0; i < shapes->params; i++)
        call.params[i] = args->params[i];
    return call;
}

err_code_t op_custom_forward(const op_t *op, const cddp_shapes_t *shapes,
                             const float *const *x, const op_args_t *args,
                             err_t *err)
{
    const cddp_call_t call = call_of(op, shapes, x, args);
    cddp_error_t error = {.culprit = -1};

    return custom_answer(&op->config, op->config.custom->forward(&call, &error),
                         &error, err);
}

err_code_t op_custom_backward(const op_t *op, const cddp_shapes_t *shapes,
                              const float *const *x, float *const *dx,
                              const op_args_t *args, err_t *err)
{
    cddp_call_t call = call_of(op, shapes, x, args);
    cddp_error_t error = {.culprit = -1};

    call.dy = args->dy;
    for (int k = 0; k < shapes->inputs; k++)
        call.dx[k] = dx[k];
    for (int i = 0; i < shapes->params; i++)
        call.dparams[i] = args->dparams[i];
    return custom_answer(
        &op->config, op->config.custom->backward(&call, &error), &error, err);
}
