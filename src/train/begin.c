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
#include "hdf5io/checkpoint.h"

/* The name under which [from] is kept: one that does not exist yet. No other
 * process can create it meanwhile, as this run holds the directory's lock. The
 * caller frees it. */
static char *new_name(const char *from)
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

/* Rename [name] in [dir], if it exists; an empty directory is removed
 * instead. */
static err_code_t entry_rename(const char *dir, const char *name, err_t *err)
{
    char *from = str_printf("%s/%s", dir, name);
    char *to = NULL;
    err_code_t rc = ERR_OK;

    if (rmdir(from) == 0)
        goto free;
    to = new_name(from);
    if (rename(from, to) != 0 && errno != ENOENT)
        rc = err_set(err, ERR_IO, "cannot rename %s to %s: %s", from, to,
                     strerror(errno));
free:
    free(to);
    free(from);
    return rc;
}

static err_code_t begin_fresh(const char *dir, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", dir);
    err_code_t rc;

    rc = entry_rename(dir, "checkpoints", err);
    if (rc == ERR_OK)
        rc = entry_rename(dir, "metrics.jsonl", err);
    if (rc == ERR_OK)
        rc = entry_rename(dir, "tb", err);
    if (rc == ERR_OK)
        rc = file_make_dirs(checkpoints, err);
    free(checkpoints);
    return rc;
}

/* --resume never refuses a directory with checkpoints: they are of another run,
 * and a later life would resume from them. */
static err_code_t check_never(const char *dir, err_t *err)
{
    char *directory = str_printf("%s/checkpoints", dir);
    char **paths = NULL;
    int count = 0;
    err_code_t rc;

    rc = hdf5io_checkpoint_list(directory, &paths, &count, err);
    if (rc == ERR_OK && count > 0)
        rc =
            err_set(err, ERR_CONFIG,
                    "--resume never, but %s holds checkpoints (newest %s): "
                    "use --resume auto to continue that run, --fresh to rename "
                    "them, or another run.dir",
                    directory, paths[0]);
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    free(directory);
    return rc;
}

/* ---- once in the life of a job ------------------------------------------- */

static char *mark_path(const train_dir_t *dir)
{
    return str_printf("%s/begun", dir->path);
}

/* Set *there if RUNDIR/begun names this job: an earlier life has then done what
 * the command line asks. */
static err_code_t mark_read(const train_dir_t *dir, bool *there, err_t *err)
{
    char *path = mark_path(dir), *text = NULL;
    size_t bytes;
    err_code_t rc = ERR_OK;

    *there = false;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        goto free;
    rc = file_read_own(path, &text, &bytes, err);
    if (rc == ERR_OK) {
        text[strcspn(text, "\n")] = '\0';
        *there = strcmp(text, dir->env->job->id) == 0;
    }
free:
    free(text);
    free(path);
    return rc;
}

/* Write this job's id to RUNDIR/begun. Outside of Slurm there is no later life
 * to tell. */
static err_code_t mark_set(const train_dir_t *dir, err_t *err)
{
    char *path, *text;
    err_code_t rc;

    if (dir->env->job->id[0] == '\0')
        return ERR_OK;
    path = mark_path(dir);
    text = str_printf("%s\n", dir->env->job->id);
    rc = file_publish(path, text, strlen(text), err);
    free(text);
    free(path);
    return rc;
}

/* Rank 0's part of train_begin. */
static err_code_t begin(train_dir_t *dir, err_t *err)
{
    bool done = false;
    err_code_t rc = ERR_OK;

    if (dir->env->job->restarts > 0 || dir->env->job->attempt > 1)
        rc = mark_read(dir, &done, err);
    dir->first = !done;
    if (rc != ERR_OK || done || dir->env->resume != TRAIN_RESUME_NEVER)
        return rc;
    return check_never(dir->path, err);
}

err_code_t train_begin(train_dir_t *dir, train_world_t *world, err_t *err)
{
    err_code_t rc = ERR_OK;

    dir->first = true;
    if (dir->env->resume == TRAIN_RESUME_AUTO)
        return ERR_OK;
    if (world->rank == 0)
        rc = begin(dir, err);
    rc = train_world_vote(world, rc, err);
    return rc == ERR_OK ? train_tell(&world->votes, 0, &dir->first,
                                     sizeof dir->first, err)
                        : rc;
}

static err_code_t begin_from(const train_dir_t *dir, int64_t step, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", dir->path);
    bool elsewhere = false;
    err_code_t rc;

    rc = hdf5io_checkpoint_supersede(checkpoints, dir->resumed, step,
                                     &elsewhere, err);
    if (rc == ERR_OK && elsewhere)
        rc = entry_rename(dir->path, "metrics.jsonl", err);
    if (rc == ERR_OK && elsewhere)
        rc = entry_rename(dir->path, "tb", err);
    free(checkpoints);
    return rc;
}

/* A checkpoint that was being published when its run ended may still have its
 * temporary name. */
static err_code_t begin_again(const train_dir_t *dir, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", dir->path);
    err_code_t rc = ERR_OK;

    if (dir->resumed != NULL)
        rc = hdf5io_checkpoint_adopt(checkpoints, dir->resumed, err);
    free(checkpoints);
    return rc;
}

err_code_t train_begin_done(const train_dir_t *dir, int64_t step, err_t *err)
{
    const train_resume_t how = dir->env->resume;
    err_code_t rc = ERR_OK;

    if (how == TRAIN_RESUME_AUTO || !dir->first)
        return begin_again(dir, err);
    if (how == TRAIN_RESUME_FRESH)
        rc = begin_fresh(dir->path, err);
    else if (how == TRAIN_RESUME_PATH)
        rc = begin_from(dir, step, err);
    return rc == ERR_OK ? mark_set(dir, err) : rc;
}
