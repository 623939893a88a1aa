/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A plugin with a layer of several inputs: y = gain * x0 * x1, plus the inputs
 * after these. The workspace keeps x0 * x1. */
#include <cddp/plugin.h>

static int64_t elems_of(const cddp_shape_t *shape)
{
    int64_t elems = 1;

    for (int i = 0; i < shape->ndim; i++)
        elems *= shape->dims[i];
    return elems;
}

static cddp_code_t shape(cddp_shapes_t *shapes, cddp_error_t *error)
{
    for (int k = 1; k < shapes->inputs; k++)
        if (elems_of(&shapes->in[k]) != elems_of(&shapes->in[0]))
            return cddp_refuse(error, "input %d is not as large as the first",
                               k + 1);
    shapes->out = shapes->in[0];
    shapes->params = 1;
    shapes->param[0] = (cddp_shape_t){.ndim = 1, .dims = {1}};
    shapes->workspace = (size_t)elems_of(&shapes->in[0]) * sizeof(float);
    return CDDP_OK;
}

static cddp_code_t forward(const cddp_call_t *call, cddp_error_t *error)
{
    const int64_t elems = elems_of(&call->shapes->in[0]);
    float *product = call->workspace;

    (void)error;
    for (int64_t i = 0; i < elems; i++) {
        const float both = call->x[0][i] * call->x[1][i];

        if (call->training)
            product[i] = both;
        call->y[i] = call->params[0][0] * both;
        for (int k = 2; k < call->shapes->inputs; k++)
            call->y[i] += call->x[k][i];
    }
    return CDDP_OK;
}

static cddp_code_t backward(const cddp_call_t *call, cddp_error_t *error)
{
    const int64_t elems = elems_of(&call->shapes->in[0]);
    const float *product = call->workspace;
    double sum = 0;

    (void)error;
    for (int64_t i = 0; i < elems; i++) {
        const float gain = call->params[0][0] * call->dy[i];

        sum += (double)call->dy[i] * product[i];
        for (int k = 0; k < call->shapes->inputs; k++)
            if (call->dx[k] != NULL)
                call->dx[k][i] = k < 2 ? gain * call->x[1 - k][i] : call->dy[i];
    }
    call->dparams[0][0] = (float)sum;
    return CDDP_OK;
}

static const cddp_layer_t pair = {.name = "pair",
                                  .several = 1,
                                  .params = {{"gain", CDDP_BEGIN_ONE}},
                                  .shape = shape,
                                  .forward = forward,
                                  .backward = backward};
static const cddp_layer_t *const layers[] = {&pair, NULL};

CDDP_PLUGIN(.layers = layers);
