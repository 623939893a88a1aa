/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_step.h"

#include <math.h>

#include "op/op_ops.h"

void op_fold_host(const op_fold_t *fold)
{
    const double count = fold->step->samples * fold->space;
    const double momentum = fold->momentum;
    const size_t channels = fold->channels;

    if (!(fold->step->samples > 0) || (fold->step->lone & fold->lone) != 0 ||
        (fold->sound != NULL && *fold->sound == 0))
        return;
    for (size_t c = 0; c < channels; c++) {
        double m = fold->sums[c] / count;
        double v = fmax(0, fold->sums[channels + c] / count - m * m);

        /* Unbiased, as the running variance is an estimate for other
         * samples. */
        if (count > 1)
            v *= count / (count - 1);
        fold->mean[c] = (float)((1 - momentum) * fold->mean[c] + momentum * m);
        fold->var[c] = (float)((1 - momentum) * fold->var[c] + momentum * v);
    }
}

err_code_t op_fold(const op_backend_ops_t *backend, const op_fold_t *fold,
                   dev_stream_t *stream, err_t *err)
{
    if (backend != NULL && backend->fold != NULL)
        return backend->fold(fold, stream, err);
    op_fold_host(fold);
    return ERR_OK;
}
