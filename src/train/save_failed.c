/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/save_failed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "train/best.h"
#include "train/record.h"
#include "train/sweeper.h"

/* A failed save is tried again after this part of checkpoint.every. */
#define TRY_SHARE 0.25

/* The number of steps after which a failed save is tried again; 0: it is not,
 * or it is not steps that decide. */
static int64_t steps_until(const train_state_t *run)
{
    const opt_every_t *every = &run->config->checkpoint.every;
    double steps = 0;

    if (every->unit == OPT_STEPS)
        steps = every->value;
    else if (every->unit == OPT_EPOCHS)
        steps = every->value * (double)run->data.train.steps;
    return (int64_t)ceil(TRY_SHARE * steps);
}

/* Write to [text] when the next try is due. */
static void next_format(const train_state_t *run, train_after_t after,
                        char *text, size_t room)
{
    const opt_every_t *every = &run->config->checkpoint.every;

    if (after == TRAIN_AFTER_SAVE || after == TRAIN_AFTER_BEGIN)
        snprintf(text, room, "tries again at once");
    else if (run->saving.failures.again > 0)
        snprintf(text, room, "tries again at step %lld",
                 (long long)run->saving.failures.again);
    else if (every->unit == OPT_TIME)
        snprintf(text, room, "tries again in %.3g s", TRY_SHARE * every->value);
    else
        snprintf(text, room, "tries again at its end");
}

/* Write to [text] what the run would lose now. */
static void newest_format(const train_state_t *run, char *text, size_t room)
{
    if (run->dir.checkpoint_step < 0)
        snprintf(text, room, "there is no checkpoint yet");
    else
        snprintf(text, room, "the newest checkpoint is of step %lld",
                 (long long)run->dir.checkpoint_step);
}

/* Rank 0 says that the run goes on. */
static void failure_say(const train_state_t *run, int64_t step,
                        train_after_t after, const err_t *err)
{
    char next[64], newest[64];

    if (run->world.rank != 0)
        return;
    next_format(run, after, next, sizeof next);
    newest_format(run, newest, sizeof newest);
    log_error("train",
              "no checkpoint of step %lld was written: %s; failure %lld of "
              "%lld in a row (checkpoint.failures): the run goes on and %s; "
              "%s",
              (long long)step, err->text, (long long)run->saving.failures.row,
              (long long)run->config->checkpoint.failures, next, newest);
}

static void failure_record(train_state_t *run, const train_saved_t *saved,
                           const err_t *err)
{
    char *path = str_printf("%s/checkpoints/step-%010lld", run->dir.path,
                            (long long)saved->step);

    train_record_unsaved(run, &(train_unsaved_t){
                                  .step = saved->step,
                                  .epoch = saved->epoch,
                                  .path = path,
                                  .reason = err->text,
                                  .failures = run->saving.failures.row,
                              });
    free(path);
}

/* Add to [err] why the run ends. */
static err_code_t failure_ends(const train_state_t *run, train_after_t after,
                               err_t *err)
{
    char newest[64];

    newest_format(run, newest, sizeof newest);
    if (after == TRAIN_AFTER_END)
        return err_suffix(err, "this was the last checkpoint of this start; %s",
                          newest);
    return err_suffix(err,
                      "no checkpoint was written %lld times in a row "
                      "(checkpoint.failures); %s",
                      (long long)run->saving.failures.row, newest);
}

err_code_t train_save_failed(train_state_t *run, const train_saved_t *saved,
                             train_after_t after, err_t *err)
{
    train_failures_t *failures = &run->saving.failures;
    const int64_t steps = steps_until(run);

    failures->row++;
    train_best_unsaved(run);
    failures->at = clock_now();
    failures->again = steps > 0 ? run->progress.step + steps : 0;
    failure_record(run, saved, err);
    train_sweeper_ask(run->saving.sweeper); /* there may be no space */
    if (after == TRAIN_AFTER_END ||
        (after != TRAIN_AFTER_SAVE &&
         failures->row >= run->config->checkpoint.failures))
        return failure_ends(run, after, err);
    failure_say(run, saved->step, after, err);
    *err = (err_t)ERR_INIT;
    return ERR_OK;
}

void train_save_tried(train_state_t *run)
{
    run->saving.failures.again = 0;
}

void train_save_done(train_state_t *run)
{
    run->saving.failures = (train_failures_t){0};
}

bool train_save_again(const train_state_t *run)
{
    const int64_t again = run->saving.failures.again;

    return again > 0 && run->progress.step >= again;
}

double train_save_instant(const train_state_t *run)
{
    const double every = run->config->checkpoint.every.value;

    return run->saving.failures.row > 0
               ? run->saving.failures.at + TRY_SHARE * every
               : run->dir.saved_at + every;
}
