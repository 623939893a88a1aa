/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

/* Start of the first line. This line says from which step on the settings
 * apply, and when that life began. */
#define FIRST_LINE "# from step "

/* Set *out to the file's text, or to NULL if there is no file. */
static err_code_t read_if_there(const char *path, char **out, err_t *err)
{
    struct stat info;

    *out = NULL;
    if (lstat(path, &info) != 0 && errno == ENOENT)
        return ERR_OK;
    return file_read_own(path, out, NULL, err);
}

/* Return the text after the first line and set *step to the step in that line.
 * Older versions wrote no such line. */
static const char *settings_of(const char *text, int64_t *step)
{
    const char *end = strchr(text, '\n');

    *step = 0;
    if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0 || end == NULL)
        return text;
    *step = strtoll(text + strlen(FIRST_LINE), NULL, 10);
    return end + 1;
}

/* Write [text] to the free config-N.yaml with the lowest N, unless an earlier
 * start wrote this text before it was killed. */
static err_code_t keep(const char *directory, const char *text, err_t *err)
{
    char *path, *there = NULL;
    bool kept = false;
    err_code_t rc;

    for (int n = 1;; n++) {
        path = str_printf("%s/config-%d.yaml", directory, n);
        rc = read_if_there(path, &there, err);
        if (rc != ERR_OK || there == NULL)
            break;
        kept = strcmp(there, text) == 0;
        free(there);
        free(path);
    }
    if (rc == ERR_OK && !kept)
        rc = file_publish(path, text, strlen(text), err);
    free(path);
    return rc;
}

err_code_t train_settings_keep(const char *directory,
                               const train_config_t *config, int64_t step,
                               err_t *err)
{
    char *path = str_printf("%s/config.yaml", directory), *there = NULL;
    str_buf_t text = {0}, file = {0};
    int64_t since = 0;
    char now[32];
    err_code_t rc;

    opt_print(train_options, config, 0, &text);
    rc = read_if_there(path, &there, err);
    if (rc != ERR_OK)
        goto free;
    if (there != NULL) {
        if (strcmp(settings_of(there, &since), text.text) == 0 && since <= step)
            goto free;
        rc = keep(directory, there, err);
    }
    if (rc != ERR_OK)
        goto free;
    clock_format(clock_wall(), now, sizeof now);
    str_buf_add(&file, FIRST_LINE "%" PRId64 ", %s\n%s", step, now, text.text);
    rc = file_publish(path, file.text, file.length, err);
free:
    free(there);
    str_buf_free(&file);
    str_buf_free(&text);
    free(path);
    return rc;
}
