/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/begin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

/* A name that nothing has: this run holds the directory's lock. */
static char *aside_name(const char *from)
{
    char stamp[32];
    char *to;

    clock_format(clock_wall(), stamp, sizeof stamp);
    to = str_printf("%s.before-%s", from, stamp);
    for (int n = 2; access(to, F_OK) == 0; n++) {
        free(to);
        to = str_printf("%s.before-%s-%d", from, stamp, n);
    }
    return to;
}

/* Nothing is deleted, what is there gets another name. A directory
 * with nothing in it is not worth one. */
static err_code_t set_aside(const char *dir, const char *name, err_t *err)
{
    char *from = str_printf("%s/%s", dir, name);
    char *to = NULL;
    err_code_t rc = ERR_OK;

    if (rmdir(from) == 0)
        goto free;
    to = aside_name(from);
    if (rename(from, to) != 0 && errno != ENOENT)
        rc = err_set(err, ERR_IO, "cannot put %s aside as %s: %s", from, to,
                     strerror(errno));
free:
    free(to);
    free(from);
    return rc;
}

static err_code_t begin_fresh(const train_config_t *config, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", config->run.dir);
    err_code_t rc;

    rc = set_aside(config->run.dir, "checkpoints", err);
    if (rc == ERR_OK)
        rc = set_aside(config->run.dir, "metrics.jsonl", err);
    if (rc == ERR_OK)
        rc = file_make_dirs(checkpoints, err);
    free(checkpoints);
    return rc;
}

/* --resume never: a directory with checkpoints would later be resumed from the
 * wrong run, so it is refused. */
static err_code_t check_never(const train_config_t *config, err_t *err)
{
    char *directory = str_printf("%s/checkpoints", config->run.dir);
    char **paths = NULL;
    int count = 0;
    err_code_t rc;

    rc = hdf5io_checkpoint_list(directory, &paths, &count, err);
    if (rc == ERR_OK && count > 0)
        rc = err_set(err, ERR_CONFIG,
                     "--resume never, but %s holds checkpoints (newest %s): "
                     "use --resume auto to go on, --fresh to put them aside, "
                     "or another run.dir",
                     directory, paths[0]);
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    free(directory);
    return rc;
}

/* ---- once in the life of a job ------------------------------------------- */

static char *mark_path(const train_state_t *run)
{
    return str_printf("%s/begun", run->config->run.dir);
}

/* Has an earlier life of this job done what the command line asks for? */
static err_code_t mark_read(const train_state_t *run, bool *there, err_t *err)
{
    char *path = mark_path(run), *text = NULL;
    size_t bytes;
    err_code_t rc = ERR_OK;

    *there = false;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        goto free;
    rc = file_read_own(path, &text, &bytes, err);
    if (rc == ERR_OK) {
        text[strcspn(text, "\n")] = '\0';
        *there = strcmp(text, run->env->job->id) == 0;
    }
free:
    free(text);
    free(path);
    return rc;
}

/* Outside of Slurm there is no later life. */
static err_code_t mark_set(const train_state_t *run, err_t *err)
{
    char *path, *text;
    err_code_t rc;

    if (run->env->job->id[0] == '\0')
        return ERR_OK;
    path = mark_path(run);
    text = str_printf("%s\n", run->env->job->id);
    rc = file_publish(path, text, strlen(text), err);
    free(text);
    free(path);
    return rc;
}

/* Rank 0's part. */
static err_code_t begin(const train_state_t *run, bool *first, err_t *err)
{
    bool done = false;
    err_code_t rc = ERR_OK;

    if (run->env->job->restarts > 0)
        rc = mark_read(run, &done, err);
    *first = !done;
    if (rc != ERR_OK || done || run->env->resume != TRAIN_RESUME_NEVER)
        return rc;
    return check_never(run->config, err);
}

err_code_t train_begin(train_state_t *run, bool *first, err_t *err)
{
    err_code_t rc = ERR_OK;

    *first = true;
    if (run->env->resume == TRAIN_RESUME_AUTO)
        return ERR_OK;
    if (run->rank == 0)
        rc = begin(run, first, err);
    rc = train_vote(&run->votes, rc, &run->speaker, err);
    return rc == ERR_OK ? train_tell(&run->votes, 0, first, sizeof *first, err)
                        : rc;
}

static err_code_t begin_from(const train_state_t *run, err_t *err)
{
    const char *dir = run->config->run.dir;
    char *checkpoints = str_printf("%s/checkpoints", dir);
    bool elsewhere = false;
    err_code_t rc;

    rc = hdf5io_checkpoint_supersede(checkpoints, run->resumed,
                                     run->progress.step, &elsewhere, err);
    if (rc == ERR_OK && elsewhere)
        rc = set_aside(dir, "metrics.jsonl", err);
    free(checkpoints);
    return rc;
}

/* What the run goes on from may have a temporary name. */
static err_code_t begin_again(const train_state_t *run, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", run->config->run.dir);
    err_code_t rc = ERR_OK;

    if (run->resumed != NULL)
        rc = hdf5io_checkpoint_adopt(checkpoints, run->resumed, err);
    free(checkpoints);
    return rc;
}

err_code_t train_begin_done(const train_state_t *run, err_t *err)
{
    const train_resume_t how = run->env->resume;
    err_code_t rc = ERR_OK;

    if (how == TRAIN_RESUME_AUTO || !run->first)
        return begin_again(run, err);
    if (how == TRAIN_RESUME_FRESH)
        rc = begin_fresh(run->config, err);
    else if (how == TRAIN_RESUME_PATH)
        rc = begin_from(run, err);
    return rc == ERR_OK ? mark_set(run, err) : rc;
}
