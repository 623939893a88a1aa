/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/trouble.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "train/inputs.h"
#include "train/spike.h"

/* Do the squares of the gradients overflow float32? The optimizer's state would
 * then not be finite, and no loss shows that. */
static bool squares_overflow(const train_config_t *config, double norm)
{
    return config->fault.diverge == TRAIN_DIVERGE_ROLLBACK &&
           config->train.clip_norm == 0 && config->train.clip_value == 0 &&
           norm > sqrt(FLT_MAX);
}

err_code_t train_trouble_find(train_state_t *run, double loss, double norm,
                              err_t *err)
{
    const double most = run->config->fault.spike;
    const int64_t step = run->progress.step + 1;
    char value[96];
    double score;

    if (squares_overflow(run->config, norm)) {
        snprintf(value, sizeof value, "%.3g, which is too large,", norm);
        return train_diverged("the gradient's norm", value, step,
                              run->dir.checkpoint_step, err);
    }
    if (most == 0 || !isfinite(loss))
        return ERR_OK;
    score = train_spike_score(&run->progress, loss);
    if (score <= most) {
        train_spike_add(&run->progress, loss);
        return ERR_OK;
    }
    snprintf(value, sizeof value,
             "%.6g, %.3g standard deviations above the last %lld losses,", loss,
             score, (long long)run->progress.loss_recent);
    return train_diverged("the loss", value, step, run->dir.checkpoint_step,
                          err);
}
