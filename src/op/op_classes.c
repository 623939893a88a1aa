/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The losses: positions of the classes, constants computed from the options,
 * and checks of targets and weights. Pure functions, shared by all backends. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/op_desc.h"
#include "op/op_loss.h"
#include "op/op_ops.h"

op_classes_t op_classes_of(const op_config_t *config)
{
    const op_desc_t *in = &config->in;
    int axis = config->loss.axis == 0 ? 1 : config->loss.axis;
    op_classes_t at = {.classes = in->dims[axis], .inner = 1};

    for (int i = axis + 1; i < in->ndim; i++)
        at.inner *= in->dims[i];
    at.rows = op_desc_elems(in) / at.classes;
    return at;
}

op_smooth_t op_smooth_of(const op_config_t *config)
{
    const op_loss_t *loss = &config->loss;
    int64_t classes = op_classes_of(config).classes;
    op_smooth_t smooth = {.hit = 1 - loss->smoothing,
                          .spread = loss->smoothing / (double)classes,
                          .sum = (double)classes};

    if (loss->weights == NULL)
        return smooth;
    smooth.sum = 0;
    for (int64_t k = 0; k < classes; k++)
        smooth.sum += (double)loss->weights[k];
    return smooth;
}

bool op_loss_left_out(const op_t *op, const op_args_t *args)
{
    const bool out = op_loss_scale(args) == 0;

    if (out && args->dx != NULL)
        memset(args->dx, 0, op->grad_in.bytes);
    return out;
}

double op_alpha(const op_config_t *config, int64_t index)
{
    const op_loss_t *loss = &config->loss;
    op_classes_t at;

    if (config->kind != OP_BCE)
        return config->alpha;
    if (loss->weights == NULL)
        return loss->positive == 0 ? 1 : loss->positive;
    at = op_classes_of(config);
    return (double)loss->weights[index / at.inner % at.classes];
}

err_code_t op_check_target(const op_config_t *config, const int64_t *target,
                           err_t *err)
{
    op_classes_t at = op_classes_of(config);
    const op_loss_t *loss = &config->loss;

    for (int64_t r = 0; r < at.rows; r++)
        if ((target[r] < 0 || target[r] >= at.classes) &&
            !(loss->ignore && target[r] == loss->ignored))
            return err_set(err, ERR_DATA,
                           "cross_entropy: the target of sample %" PRId64
                           " of the batch is %" PRId64
                           ", but the model has the classes 0 to %" PRId64,
                           r / (at.rows / config->in.dims[0]), target[r],
                           at.classes - 1);
    return ERR_OK;
}

err_code_t op_check_weights(const op_config_t *config, const float *weights,
                            err_t *err)
{
    for (int64_t n = 0; weights != NULL && n < config->in.dims[0]; n++)
        if (!(isfinite(weights[n]) && weights[n] >= 0))
            return err_set(err, ERR_DATA,
                           "loss %s: the weight of sample %" PRId64
                           " of the batch is %g, but must be a number and not "
                           "below 0",
                           op_kind_name(config->kind), n, (double)weights[n]);
    return ERR_OK;
}
