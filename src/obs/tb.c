/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/tb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#define BUFFER_ROOM (64 << 10) /* bytes, beside the run file */
#define FILE_PREFIX "events.out.tfevents."

struct obs_tb {
    int fd;
    char *path;
    double every, written_at; /* seconds; instant of the newest write */
    off_t whole;              /* size of the file: whole records */
    bool warned;
    bool lost; /* no more records: the file was removed, or ends in a part */
    obs_tb_buffer_t buffer;
};

/* ---- writing ------------------------------------------------------------- */

/* Log the first failure to write; later ones are not logged. */
static void failure_tell(obs_tb_t *tb, const char *why)
{
    if (!tb->warned)
        log_warn("obs", "cannot write %s: %s; TensorBoard will lack numbers",
                 tb->path, why);
    tb->warned = true;
}

/* Write the buffer. Returns false if not all of it was written. */
static bool buffer_put(obs_tb_t *tb)
{
    const uint8_t *at = tb->buffer.bytes;
    size_t left = tb->buffer.length;

    while (left > 0) {
        const ssize_t put = write(tb->fd, at, left);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        at += put;
        left -= (size_t)put;
    }
    tb->whole += (off_t)tb->buffer.length;
    return true;
}

void obs_tb_flush(obs_tb_t *tb)
{
    struct stat file;

    if (tb == NULL || tb->buffer.length == 0)
        return;
    if (!tb->lost && fstat(tb->fd, &file) == 0 && file.st_nlink == 0) {
        failure_tell(tb, "it was removed");
        tb->lost = true;
    }
    if (!tb->lost && !buffer_put(tb)) {
        failure_tell(tb, strerror(errno));
        /* A reader stops at a part of a record. */
        tb->lost = ftruncate(tb->fd, tb->whole) != 0;
    }
    tb->buffer.length = 0;
    tb->written_at = clock_now();
}

/* ---- steps and evaluations ----------------------------------------------- */

static int scalar_put(obs_tb_scalar_t *out, int count, const char *tag,
                      double value)
{
    if (isnan(value))
        return count;
    out[count] = (obs_tb_scalar_t){.tag = tag, .value = (float)value};
    return count + 1;
}

static void scalars_add(obs_tb_t *tb, int64_t step,
                        const obs_tb_scalar_t *scalars, int count)
{
    const double wall = clock_wall();

    if (!obs_tb_add_scalars(&tb->buffer, wall, step, scalars, count)) {
        obs_tb_flush(tb);
        if (!obs_tb_add_scalars(&tb->buffer, wall, step, scalars, count))
            failure_tell(tb, "a record is too long");
    }
    if (clock_now() - tb->written_at >= tb->every)
        obs_tb_flush(tb);
}

void obs_tb_step(obs_tb_t *tb, const obs_step_t *row)
{
    obs_tb_scalar_t scalars[OBS_TB_SCALARS_MAX];
    int count = 0;

    if (tb == NULL)
        return;
    count = scalar_put(scalars, count, "loss", row->loss);
    count = scalar_put(scalars, count, "lr", row->lr);
    count = scalar_put(scalars, count, "grad_norm", row->grad_norm);
    count = scalar_put(scalars, count, "samples_per_s", row->samples_per_s);
    for (int i = 0; i < row->value_count; i++)
        count = scalar_put(scalars, count, row->values[i].name,
                           row->values[i].value);
    scalars_add(tb, row->step, scalars, count);
}

void obs_tb_eval(obs_tb_t *tb, const obs_eval_t *row)
{
    char tags[OBS_VALUES_MAX][sizeof row->values->name + 8];
    obs_tb_scalar_t scalars[OBS_TB_SCALARS_MAX];
    int count = 0;

    if (tb == NULL)
        return;
    count = scalar_put(scalars, count, "valid/loss", row->loss);
    count = scalar_put(scalars, count, "valid/accuracy", row->accuracy);
    for (int i = 0; i < row->value_count; i++) {
        snprintf(tags[i], sizeof tags[i], "valid/%s", row->values[i].name);
        count = scalar_put(scalars, count, tags[i], row->values[i].value);
    }
    scalars_add(tb, row->step, scalars, count);
}

void obs_tb_back(obs_tb_t *tb, int64_t step)
{
    if (tb == NULL)
        return;
    obs_tb_flush(tb);
    obs_tb_add_start(&tb->buffer, clock_wall(), step + 1);
}

/* ---- opening ------------------------------------------------------------- */

/* A number for the name of the next file: the time in seconds, or more if there
 * is a file with a later number, as readers sort by name. */
static int64_t number_next(const char *directory)
{
    int64_t next = (int64_t)clock_wall();
    DIR *dir = opendir(directory);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        const size_t prefix = sizeof FILE_PREFIX - 1;
        int64_t number;

        if (strncmp(entry->d_name, FILE_PREFIX, prefix) != 0)
            continue;
        number = strtoll(entry->d_name + prefix, NULL, 10);
        /* a name of another program may hold anything */
        if (number >= next && number < next + (INT64_C(1) << 31))
            next = number + 1;
    }
    if (dir != NULL)
        closedir(dir);
    return next;
}

/* The run file as a block of code in Markdown. The caller frees it. */
static char *run_file_format(const char *text)
{
    str_buf_t out = {0};

    str_buf_add(&out, "%s", "");
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");

        str_buf_add(&out, "    %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
    return out.text;
}

/* Write what stands at the head of a file. */
static void head_write(obs_tb_t *tb, const obs_tb_config_t *config,
                       const char *run_file)
{
    const int64_t hidden = config->step <= 0 ? 0 : config->step + 1;
    const double wall = clock_wall();
    int count = config->hparam_count;

    if (count > OBS_TB_SCALARS_MAX)
        count = OBS_TB_SCALARS_MAX;
    obs_tb_add_version(&tb->buffer, wall);
    obs_tb_add_start(&tb->buffer, wall, hidden);
    if (!obs_tb_add_hparams(&tb->buffer, wall, config->hparams, count))
        log_warn("obs", "%s: the settings are too long for TensorBoard",
                 tb->path);
    obs_tb_add_text(&tb->buffer, wall, "run_file/text_summary", run_file);
    obs_tb_flush(tb);
}

/* Make the file; [run_file] is the formatted text. */
static err_code_t file_make(const obs_tb_config_t *config, const char *run_file,
                            obs_tb_t *tb, err_t *err)
{
    err_code_t rc;

    tb->path = str_printf("%s/" FILE_PREFIX "%010" PRId64 ".cddp",
                          config->directory, number_next(config->directory));
    tb->buffer.room = BUFFER_ROOM + strlen(run_file);
    rc = mem_new(uint8_t, tb->buffer.room, "TensorBoard's records",
                 &tb->buffer.bytes, err);
    if (rc == ERR_OK)
        rc = file_open_regular(tb->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL,
                               FILE_OWN, &tb->fd, err);
    if (rc == ERR_OK)
        head_write(tb, config, run_file);
    return rc;
}

err_code_t obs_tb_open(const obs_tb_config_t *config, obs_tb_t **out,
                       err_t *err)
{
    char *run_file = NULL;
    obs_tb_t *tb = NULL;
    err_code_t rc;

    if (!obs_tb_built())
        return err_set(err, ERR_UNAVAILABLE,
                       "this build cannot write TensorBoard's files: it was "
                       "configured without libprotobuf-c or ISA-L");
    rc = file_make_dirs(config->directory, err);
    if (rc == ERR_OK)
        rc = mem_new(obs_tb_t, 1, "TensorBoard's file", &tb, err);
    if (rc != ERR_OK)
        return rc;
    *tb =
        (obs_tb_t){.fd = -1, .every = config->every, .written_at = clock_now()};
    run_file = run_file_format(config->run_file);
    rc = file_make(config, run_file, tb, err);
    free(run_file);
    if (rc == ERR_OK)
        *out = tb;
    else
        obs_tb_close(tb);
    return rc;
}

void obs_tb_close(obs_tb_t *tb)
{
    if (tb == NULL)
        return;
    obs_tb_flush(tb);
    if (tb->fd >= 0)
        close(tb->fd);
    mem_free(tb->buffer.bytes);
    free(tb->path);
    mem_free(tb);
}
