/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/best.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint_io.h"

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

static const train_best_mark_t none = {NAN, -1};

/* Called between two tries to read. */
static void read_alive(void *context)
{
    train_world_t *world = context;

    train_storage_begin(world, world->phase);
}

/* Rank 0 reads which checkpoint was the best. Local. */
static err_code_t kept_read(train_state_t *run, err_t *err)
{
    char *home = str_printf("%s/checkpoints", run->dir.path);
    hdf5io_io_t io = hdf5io_io_system;
    hdf5io_best_t found;
    err_code_t rc;

    io.alive = read_alive;
    io.alive_context = &run->world;
    io.retry_seconds = RETRY_SHARE * run->config->fault.io_timeout;
    rc = hdf5io_best_read(&io, home, &found, err);
    free(home);
    if (rc == ERR_OK && found.step >= 0 &&
        strcmp(found.metric, metric_of(run)) == 0 &&
        found.step <= run->dir.saved_step)
        run->saving.best.kept = (train_best_mark_t){found.value, found.step};
    return rc;
}

err_code_t train_best_open(train_state_t *run, err_t *err)
{
    train_best_t *best = &run->saving.best;
    err_code_t rc = ERR_OK;

    *best = (train_best_t){none, none, none};
    if (!wanted(run))
        return ERR_OK;
    if (run->world.rank == 0) {
        train_storage_begin(&run->world, "resume");
        rc = kept_read(run, err);
        train_storage_end(&run->world);
    }
    rc = train_world_vote(&run->world, rc, err);
    if (rc != ERR_OK)
        return rc;
    best->now = best->kept;
    return train_tell(&run->world.votes, 0, best, sizeof *best, err);
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

void train_best_saving(train_state_t *run)
{
    train_best_t *best = &run->saving.best;

    best->saving =
        wanted(run) && best->now.step == run->progress.step ? best->now : none;
}

void train_best_saved(train_state_t *run)
{
    train_best_t *best = &run->saving.best;

    if (!wanted(run) || best->saving.step < 0)
        return;
    best->kept = best->saving;
    best->saving = none;
    if (run->world.rank == 0)
        log_info("train", "the checkpoint of step %lld is the best: %s %.6g",
                 (long long)best->kept.step, metric_of(run), best->kept.value);
}

void train_best_unsaved(train_state_t *run)
{
    train_best_t *best = &run->saving.best;

    if (best->saving.step >= 0 && best->now.step == best->saving.step)
        best->now = best->kept;
    best->saving = none;
}

void train_best_back(train_state_t *run)
{
    train_best_t *best = &run->saving.best;

    if (best->kept.step > run->dir.saved_step)
        best->kept = none;
    best->now = best->kept;
    best->saving = none;
}
