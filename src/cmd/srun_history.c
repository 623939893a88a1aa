/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_history.h"

#include <stdio.h>
#include <string.h>

static void causes_clear(srun_history_t *history)
{
    memset(history->causes, 0, sizeof history->causes);
}

/* One more start has begun. It is fruitless until it writes a checkpoint. */
static void start_count(srun_history_t *history)
{
    const int last = SLURM_FRUITLESS_MOST - 1;

    memmove(history->causes[0], history->causes[1],
            (size_t)last * sizeof history->causes[0]);
    history->causes[last][0] = '\0';
    history->fruitless++;
    history->ended = false;
}

/* Lines of another start than the one before begin. A job that somebody
 * submitted anew has all its starts before it. */
static void start_see(srun_history_t *history, const obs_lives_start_t *start)
{
    const bool same_job = strcmp(history->job, start->job) == 0;

    if (same_job && history->restart == start->restart &&
        history->attempt == start->attempt)
        return;
    if (!same_job) {
        history->fruitless = 0;
        history->io_requeued = false;
        causes_clear(history);
    }
    snprintf(history->job, sizeof history->job, "%s", start->job);
    history->restart = start->restart;
    history->attempt = start->attempt;
    start_count(history);
}

static void checkpoint_see(srun_history_t *history, int64_t step)
{
    if (step <= history->checkpoint)
        return;
    history->checkpoint = step;
    history->fruitless = 0;
    history->io_requeued = false;
    causes_clear(history);
}

static void end_see(srun_history_t *history, const char *detail)
{
    char *cause = history->causes[SLURM_FRUITLESS_MOST - 1];

    history->ended = true;
    snprintf(cause, sizeof history->causes[0], "%s", detail);
}

static void maximum(double *of, double value)
{
    if (value > *of)
        *of = value;
}

static void line_see(void *context, const obs_lives_read_t *read)
{
    srun_history_t *history = context;
    const obs_lives_line_t *line = &read->line;

    start_see(history, &read->start);
    switch (line->event) {
    case OBS_LIVES_BEGIN: /* --fresh: the checkpoints are those of another run
                           */
        if (strcmp(line->detail, "fresh") == 0)
            history->checkpoint = -1;
        break;
    case OBS_LIVES_FIRST_STEP:
        maximum(&history->first_step_s, line->seconds);
        break;
    case OBS_LIVES_CHECKPOINT:
        maximum(&history->save_s, line->seconds);
        checkpoint_see(history, line->step);
        break;
    case OBS_LIVES_RESUMED: /* perhaps from a local checkpoint */
        checkpoint_see(history, line->step);
        break;
    case OBS_LIVES_REQUEUE:
        history->io_requeued |= line->status == ERR_IO;
        break;
    case OBS_LIVES_END:
        end_see(history, line->detail);
        break;
    default:
        break;
    }
}

err_code_t srun_history_read(const char *run_dir, const obs_lives_start_t *now,
                             srun_history_t *out, err_t *err)
{
    srun_history_t history = {.checkpoint = -1, .restart = -1};
    err_code_t rc = obs_lives_read(run_dir, line_see, &history, NULL, err);

    if (rc != ERR_OK)
        return rc;
    if (now != NULL)
        start_see(&history, now);
    *out = history;
    return ERR_OK;
}
