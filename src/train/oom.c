/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "train/limits.h"

/* The lines of the file: this life of the run, the culprit and its host; the
 * cause; the message. */
#define LIFE "%s %d %d "

static char *path_of(const train_oom_t *oom)
{
    return str_printf("%s/oom", oom->dir);
}

static char *life_of(const train_oom_t *oom)
{
    const slurm_job_t *job = oom->job;

    return str_printf(LIFE, job->step_id[0] == '\0' ? "-" : job->step_id,
                      job->restarts, job->attempt);
}

train_oom_t train_oom_begin(const char *dir, const slurm_job_t *job,
                            const char *root)
{
    return (train_oom_t){.dir = dir,
                         .job = job,
                         .root = root,
                         .before = slurm_memory_kills(root)};
}

static void file_write(const train_oom_t *oom, const err_t *err)
{
    char *life = life_of(oom), *path = path_of(oom);
    char *text = str_printf("%s%d %s\n%s\n%s\n", life, err->culprit, err->host,
                            oom->cause, err->text);
    err_t trouble = ERR_INIT;

    if (file_publish(path, text, strlen(text), &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
    free(text);
    free(path);
    free(life);
}

err_code_t train_oom_look(train_oom_t *oom, err_t *err)
{
    const int64_t now = slurm_memory_kills(oom->root);
    const slurm_memory_t limit = train_limits_node(oom->root);
    const err_t death = *err;

    if (oom->before < 0 || now <= oom->before)
        return err->code;
    slurm_memory_words(&limit, now - oom->before, oom->cause,
                       sizeof oom->cause);
    err_set(err, ERR_MEMORY,
            "rank %d on %s was killed: %s: start fewer ranks on a node, ask "
            "for more memory, or try a smaller train.batch, a larger "
            "train.accumulate, or train.recompute: blocks",
            death.culprit, death.host, oom->cause);
    err->culprit = death.culprit;
    memcpy(err->host, death.host, sizeof err->host);
    file_write(oom, err);
    return err->code;
}

bool train_oom_found(const train_oom_t *oom, err_t *out,
                     char cause[TRAIN_OOM_CAUSE_MAX])
{
    char *life = life_of(oom), *path = path_of(oom), *text = NULL;
    char host[ERR_HOST_MAX], words[TRAIN_OOM_CAUSE_MAX], message[ERR_TEXT_MAX];
    bool found = false;
    int culprit = -1;

    if (file_read_own(path, &text, NULL, NULL) == ERR_OK &&
        strncmp(text, life, strlen(life)) == 0)
        found = sscanf(text + strlen(life), "%d %63s\n%159[^\n]\n%1023[^\n]",
                       &culprit, host, words, message) == 4;
    if (found) {
        err_set(out, ERR_MEMORY, "%s", message);
        out->culprit = culprit;
        memcpy(out->host, host, sizeof host);
        memcpy(cause, words, sizeof words);
    }
    free(text);
    free(path);
    free(life);
    return found;
}
