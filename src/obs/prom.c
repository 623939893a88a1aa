/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/prom.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "base/str.h"

/* Bytes of the largest file: some numbers, and those of an evaluation. */
#define TEXT_ROOM (64 << 10)
#define LABELS_MAX 1024

struct obs_prom {
    char *path, *draft;
    char labels[LABELS_MAX]; /* job="7",rank="0",run="ising" */
    double every, written_at;
    bool written, warned;
    int64_t saved_step; /* -1: no checkpoint in this life */
    double saved_at;    /* wall-clock time of it */
    int64_t eval_step;  /* -1: no evaluation in this life */
    obs_eval_t eval;    /* its numbers are in [values] */
    obs_value_t values[OBS_VALUES_MAX];
    char text[TEXT_ROOM];
    size_t length;
};

/* ---- text ---------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void
text_add(obs_prom_t *prom, const char *format, ...)
{
    const size_t room = sizeof prom->text - prom->length;
    va_list args;
    int length;

    va_start(args, format);
    length = numeric_vprint(prom->text + prom->length, room, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < room)
        prom->length += (size_t)length;
}

/* Copy [text] to [out] as the value of a label: backslashes, quotes and
 * newlines are escaped. It is cut if it does not fit. */
static const char *label_escape(const char *text, char *out, size_t room)
{
    size_t at = 0;

    for (; *text != '\0' && at + 3 <= room; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            out[at++] = '\\';
        out[at++] = *text;
        if (*text == '\n')
            out[at - 1] = 'n';
    }
    out[at] = '\0';
    return out;
}

static void value_add(obs_prom_t *prom, double value)
{
    if (isnan(value))
        text_add(prom, " NaN\n");
    else if (isinf(value))
        text_add(prom, value > 0 ? " +Inf\n" : " -Inf\n");
    else
        text_add(prom, " %.17g\n", value);
}

static void gauge_head(obs_prom_t *prom, const char *name, const char *help)
{
    text_add(prom, "# HELP cddp_%s %s\n# TYPE cddp_%s gauge\n", name, help,
             name);
}

static void gauge_add(obs_prom_t *prom, const char *name, const char *help,
                      double value)
{
    gauge_head(prom, name, help);
    text_add(prom, "cddp_%s{%s}", name, prom->labels);
    value_add(prom, value);
}

static void eval_value_add(obs_prom_t *prom, const char *name, double value)
{
    char label[2 * sizeof prom->values->name + 1];

    text_add(prom, "cddp_evaluation{%s,metric=\"%s\"}", prom->labels,
             label_escape(name, label, sizeof label));
    value_add(prom, value);
}

static void eval_add(obs_prom_t *prom)
{
    const obs_eval_t *eval = &prom->eval;

    if (prom->eval_step < 0)
        return;
    gauge_add(prom, "evaluation_step", "Step of the newest evaluation.",
              (double)prom->eval_step);
    gauge_head(prom, "evaluation",
               "Loss and metrics of the newest evaluation.");
    eval_value_add(prom, "loss", eval->loss);
    if (!isnan(eval->accuracy))
        eval_value_add(prom, "accuracy", eval->accuracy);
    for (int i = 0; i < eval->value_count; i++)
        eval_value_add(prom, prom->values[i].name, prom->values[i].value);
}

static void text_make(obs_prom_t *prom, const obs_step_t *row)
{
    prom->length = 0;
    gauge_add(prom, "step", "Updates done.", (double)row->step);
    gauge_add(prom, "epoch", "Epoch in progress, from 0.", (double)row->epoch);
    gauge_add(prom, "loss", "Training loss of the newest step.", row->loss);
    gauge_add(prom, "learning_rate", "Learning rate of the newest step.",
              row->lr);
    gauge_add(prom, "gradient_norm", "Norm of the newest gradient.",
              row->grad_norm);
    gauge_add(prom, "samples_per_second", "Samples of all ranks per second.",
              row->samples_per_s);
    gauge_add(prom, "step_seconds", "Duration of the newest step.",
              row->step_s);
    gauge_add(prom, "data_wait_seconds",
              "Time that the newest step waited for data.", row->data_s);
    gauge_add(prom, "communication_wait_seconds",
              "Time that the newest step waited for other ranks.",
              row->comm_exposed_s);
    gauge_add(prom, "update_timestamp_seconds",
              "When these numbers were written.", clock_wall());
    if (prom->saved_step >= 0) {
        gauge_add(prom, "checkpoint_step", "Step of the newest checkpoint.",
                  (double)prom->saved_step);
        gauge_add(prom, "checkpoint_timestamp_seconds",
                  "When the newest checkpoint was written.", prom->saved_at);
    }
    eval_add(prom);
}

/* ---- the file ------------------------------------------------------------ */

/* Write the text to the draft and rename it. A draft that is there already may
 * be anything: it is removed, not followed. file_publish does more: it
 * allocates and waits for the disk, which a step must not do. */
static bool text_publish(obs_prom_t *prom)
{
    const char *at = prom->text;
    size_t left = prom->length;
    int fd, why = 0;

    unlink(prom->draft);
    fd = open(prom->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              0666);
    if (fd < 0)
        return false;
    while (left > 0 && why == 0) {
        const ssize_t put = write(fd, at, left);

        if (put >= 0) {
            at += put;
            left -= (size_t)put;
        } else if (errno != EINTR) {
            why = errno;
        }
    }
    if (close(fd) != 0 && why == 0)
        why = errno;
    if (why == 0 && rename(prom->draft, prom->path) != 0)
        why = errno;
    if (why != 0)
        unlink(prom->draft);
    errno = why;
    return why == 0;
}

void obs_prom_step(obs_prom_t *prom, const obs_step_t *row)
{
    const double now = clock_now();

    if (prom == NULL || (prom->written && now - prom->written_at < prom->every))
        return;
    text_make(prom, row);
    if (!text_publish(prom) && !prom->warned) {
        log_warn("obs", "cannot write %s: %s; Prometheus will not see this run",
                 prom->path, strerror(errno));
        prom->warned = true;
    }
    prom->written = true;
    prom->written_at = now;
}

void obs_prom_eval(obs_prom_t *prom, const obs_eval_t *row)
{
    if (prom == NULL)
        return;
    prom->eval = *row;
    prom->eval.values = prom->values;
    if (row->value_count > 0)
        memcpy(prom->values, row->values,
               (size_t)row->value_count * sizeof *row->values);
    prom->eval_step = row->step;
}

void obs_prom_saved(obs_prom_t *prom, int64_t step)
{
    if (prom == NULL)
        return;
    prom->saved_step = step;
    prom->saved_at = clock_wall();
}

/* ---- opening and closing ------------------------------------------------- */

/* Sixteen digits that stand for the run directory [path], whatever the job. */
static void run_mark(const char *path, char out[HASH_TEXT_MAX])
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *whole =
        here == NULL ? str_dup(path) : str_printf("%s/%s", here, path);

    hash_format(hash_bytes(whole, strlen(whole)), out);
    free(whole);
    free(here);
}

/* Is [name] a file of the run [mark]: cddp-JOB-MARK-RANK.prom, or its draft? */
static bool name_is_ours(const char *name, const char *mark)
{
    const char *at;

    name += name[0] == '.';
    at = strstr(name, mark);
    return strncmp(name, "cddp-", 5) == 0 && at != NULL && at > name &&
           at[-1] == '-' && at[strlen(mark)] == '-' &&
           strstr(at, ".prom") != NULL;
}

static err_code_t earlier_remove(const char *directory, const char *mark,
                                 err_t *err)
{
    DIR *dir = opendir(directory);

    if (dir == NULL)
        return err_set(err, ERR_IO,
                       "cannot read the directory obs.prometheus: %s: %s",
                       directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        /* Another rank of this host may remove it, too. */
        if (name_is_ours(entry->d_name, mark))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    if (access(directory, W_OK) != 0)
        return err_set(err, ERR_IO,
                       "cannot write to the directory obs.prometheus: %s: %s",
                       directory, strerror(errno));
    return ERR_OK;
}

/* [config]->job, or "local", in a file's name. */
static void job_name(const obs_prom_config_t *config, char out[64])
{
    snprintf(out, 64, "%s", config->job[0] == '\0' ? "local" : config->job);
    for (char *at = out; *at != '\0'; at++)
        if (*at == '/')
            *at = '_';
}

err_code_t obs_prom_open(const obs_prom_config_t *config, obs_prom_t **out,
                         err_t *err)
{
    char mark[HASH_TEXT_MAX], job[64], run[256], label[130];
    obs_prom_t *prom = NULL;
    err_code_t rc;

    run_mark(config->run_dir, mark);
    rc = earlier_remove(config->directory, mark, err);
    if (rc == ERR_OK)
        rc = mem_new(obs_prom_t, 1, "the text for Prometheus", &prom, err);
    if (rc != ERR_OK)
        return rc;
    job_name(config, job);
    prom->path = str_printf("%s/cddp-%s-%s-%d.prom", config->directory, job,
                            mark, config->rank);
    prom->draft = str_printf("%s/.cddp-%s-%s-%d.prom.tmp", config->directory,
                             job, mark, config->rank);
    prom->every = config->every;
    prom->saved_step = prom->eval_step = -1;
    snprintf(prom->labels, sizeof prom->labels,
             "job=\"%s\",rank=\"%d\",run=\"%s\"",
             label_escape(config->job, label, sizeof label), config->rank,
             label_escape(config->run, run, sizeof run));
    *out = prom;
    return ERR_OK;
}

void obs_prom_close(obs_prom_t *prom)
{
    if (prom == NULL)
        return;
    unlink(prom->path);
    free(prom->path);
    free(prom->draft);
    mem_free(prom);
}
