/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/lives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "train/init.h"

void train_lives_add(const train_state_t *run, const obs_lives_line_t *line)
{
    const slurm_job_t *job = run->env->job;
    const obs_lives_start_t start = {.job = job->id,
                                     .step_id = job->step_id,
                                     .nodes = job->nodes,
                                     .restart = job->restarts,
                                     .attempt = job->attempt};
    err_t trouble = ERR_INIT;

    if (run->dir.owned &&
        obs_lives_append(run->dir.path, &start, line, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
}

/* The run begins with the weights of checkpoint.init. The history may be read
 * in another working directory, so it gets the absolute path. */
static void weights_add(const train_state_t *run)
{
    const char *init = run->config->checkpoint.init;
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_WEIGHTS, run->progress.step);
    char *path = realpath(init, NULL);

    line.detail = path != NULL ? path : init;
    train_lives_add(run, &line);
    free(path);
}

void train_lives_begin(const train_state_t *run)
{
    const train_resume_t how = run->env->resume;
    obs_lives_line_t line = obs_lives_line(OBS_LIVES_BEGIN, run->progress.step);

    if (run->dir.first &&
        (how == TRAIN_RESUME_FRESH || how == TRAIN_RESUME_NEVER))
        line.detail = "fresh";
    line.spent = &run->seen.spent;
    train_lives_add(run, &line);
    if (run->dir.saved_step < 0 && train_init_given(run->config))
        weights_add(run);
    if (run->dir.resumed == NULL)
        return;
    line = obs_lives_line(OBS_LIVES_RESUMED, run->progress.step);
    line.detail = run->dir.resumed;
    train_lives_add(run, &line);
}

typedef struct saves {
    const char *job; /* id of the job of this process */
    /* Of the newest checkpoints: the k-th is in [k % TRAIN_LIVES_SAVES]. */
    double seconds[TRAIN_LIVES_SAVES];
    int count;
    bool kill_wait;
} saves_t;

static void save_visit(void *context, const obs_lives_read_t *read)
{
    saves_t *saves = context;

    if (read->line.event == OBS_LIVES_CHECKPOINT &&
        isfinite(read->line.seconds))
        saves->seconds[saves->count++ % TRAIN_LIVES_SAVES] = read->line.seconds;
    if (read->line.event == OBS_LIVES_KILL_WAIT &&
        strcmp(read->start.job, saves->job) == 0)
        saves->kill_wait = true;
}

train_lives_past_t train_lives_past(const train_state_t *run)
{
    saves_t saves = {.job = run->env->job->id};
    train_lives_past_t past = {0};
    err_t trouble = ERR_INIT;

    if (obs_lives_read(run->dir.path, save_visit, &saves, NULL, &trouble) !=
        ERR_OK)
        log_warn("train", "%s", trouble.text);
    for (int i = 0; i < TRAIN_LIVES_SAVES; i++)
        past.save_s = fmax(past.save_s, saves.seconds[i]);
    past.kill_wait = saves.kill_wait;
    return past;
}

void train_lives_end(const train_state_t *run, err_code_t rc, const err_t *err)
{
    obs_lives_line_t line = obs_lives_line(OBS_LIVES_FAULT, run->progress.step);

    if (rc != ERR_OK && err->culprit >= 0) {
        line.culprit = err->culprit;
        line.host = err->host;
        line.detail = err->text;
        train_lives_add(run, &line);
    }
    line = obs_lives_line(OBS_LIVES_END, run->progress.step);
    line.status = (int)rc;
    line.detail = rc == ERR_OK ? NULL : err->text;
    if (run->world.rank == 0) /* other ranks know only this start's */
        line.spent = &run->seen.spent;
    train_lives_add(run, &line);
}
