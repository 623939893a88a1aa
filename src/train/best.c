/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/best.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

static const char *metric_of(const train_state_t *run)
{
    return run->config->checkpoint.best == TRAIN_BEST_LOSS ? "valid_loss"
                                                           : "valid_accuracy";
}

static bool wanted(const train_state_t *run)
{
    return run->config->checkpoint.best != TRAIN_BEST_NONE;
}

err_code_t train_best_check(const train_state_t *run, err_t *err)
{
    if (!wanted(run) || run->data.valid.dataset != NULL)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "checkpoint.best is %s, but there is no evaluation, as "
                   "data.valid is empty: name validation shards, or leave it "
                   "out",
                   metric_of(run));
}

err_code_t train_best_open(train_state_t *run, err_t *err)
{
    char *home = str_printf("%s/checkpoints", run->dir.path);
    train_best_t *best = &run->saving.best;
    hdf5io_best_t found;

    *best = (train_best_t){.now = {NAN, -1}, .kept = {NAN, -1}};
    if (wanted(run) && run->world.rank == 0 && hdf5io_best_read(home, &found) &&
        strcmp(found.metric, metric_of(run)) == 0 &&
        found.step <= run->dir.saved_step)
        best->kept = (train_best_mark_t){found.value, found.step};
    free(home);
    best->now = best->kept;
    return wanted(run)
               ? train_tell(&run->world.votes, 0, best, sizeof *best, err)
               : ERR_OK;
}

bool train_best_eval(train_state_t *run, const train_eval_t *eval)
{
    train_best_t *best = &run->saving.best;
    const bool loss = run->config->checkpoint.best == TRAIN_BEST_LOSS;
    const double value = loss ? eval->loss : eval->accuracy;
    const double old = best->now.value;

    if (!wanted(run) || !isfinite(value) ||
        (isfinite(old) && (loss ? value >= old : value <= old)))
        return false;
    best->now = (train_best_mark_t){value, run->progress.step};
    return true;
}

bool train_best_of(const train_state_t *run, hdf5io_best_t *out)
{
    const train_best_t *best = &run->saving.best;

    if (!wanted(run) || best->now.step != run->progress.step)
        return false;
    *out = (hdf5io_best_t){.value = best->now.value, .step = best->now.step};
    snprintf(out->metric, sizeof out->metric, "%s", metric_of(run));
    return true;
}

void train_best_saved(train_state_t *run, int64_t step)
{
    train_best_t *best = &run->saving.best;

    if (!wanted(run) || best->now.step != step)
        return;
    best->kept = best->now;
    if (run->world.rank == 0)
        log_info("train", "the checkpoint of step %lld is the best: %s %.6g",
                 (long long)step, metric_of(run), best->now.value);
}

void train_best_unsaved(train_state_t *run)
{
    run->saving.best.now = run->saving.best.kept;
}
