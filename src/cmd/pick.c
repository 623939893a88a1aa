/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/pick.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "conf/conf.h"

#define BLANKS " \t\r\v\f"

static err_code_t number_of(const char *path, const char *task, int64_t *number,
                            err_t *err)
{
    if (task == NULL || task[0] == '\0')
        return err_set(err, ERR_USAGE,
                       "--pick %s takes the line of this task of an array, but "
                       "SLURM_ARRAY_TASK_ID is not set: submit the job with "
                       "sbatch --array=1-N, or set the variable to try one "
                       "line",
                       path);
    if (!str_to_int(task, number) || *number < 1)
        return err_set(err, ERR_USAGE,
                       "--pick %s: SLURM_ARRAY_TASK_ID is \"%s\", expected the "
                       "number of a line, from 1 on: sbatch --array=1-N",
                       path, task);
    return ERR_OK;
}

/* Find line [number] of [text] and end it with NUL. Returns NULL if there are
 * only *lines lines. */
static char *line_find(char *text, int64_t number, int64_t *lines)
{
    *lines = 0;
    while (*text != '\0') {
        char *end = text + strcspn(text, "\n");

        if (++*lines == number) {
            *end = '\0';
            return text;
        }
        text = end + (*end != '\0');
    }
    return NULL;
}

/* Take the next word of *rest, which is not at a blank, without its quotes, and
 * end it with NUL. False: a quote is not closed. */
static bool word_take(char **rest, char **word)
{
    char *from = *rest, *to = *rest, quote = '\0';

    *word = to;
    for (; *from != '\0' && (quote != '\0' || !strchr(BLANKS, *from)); from++)
        if (quote == '\0' && (*from == '\'' || *from == '"'))
            quote = *from;
        else if (*from == quote)
            quote = '\0';
        else
            *to++ = *from;
    *rest = from + (*from != '\0');
    *to = '\0';
    return quote == '\0';
}

static err_code_t line_apply(char *line, tree_t *root, err_t *err)
{
    char *rest = line + strspn(line, BLANKS), *word;
    err_code_t rc = ERR_OK;

    if (*rest == '\0')
        return err_set(err, ERR_USAGE,
                       "the line is empty, expected words KEY=VALUE");
    while (rc == ERR_OK && *rest != '\0') {
        rc = word_take(&rest, &word)
                 ? conf_set(root, word, err)
                 : err_set(err, ERR_USAGE, "a quote is not closed: %s", word);
        rest += strspn(rest, BLANKS);
    }
    return rc;
}

err_code_t pick_apply(const char *path, const char *task, tree_t *root,
                      err_t *err)
{
    char *text = NULL, *line;
    int64_t number = 0, lines;
    err_code_t rc = number_of(path, task, &number, err);

    if (rc == ERR_OK)
        rc = file_read(path, &text, NULL, err);
    if (rc != ERR_OK)
        return rc;
    line = line_find(text, number, &lines);
    if (line == NULL)
        rc = err_set(err, ERR_USAGE,
                     "--pick %s: there is no line %lld, the file has %lld: "
                     "sbatch --array=1-%lld",
                     path, (long long)number, (long long)lines,
                     (long long)lines);
    else if ((rc = line_apply(line, root, err)) != ERR_OK)
        (void)err_prefix(err, "--pick %s, line %lld", path, (long long)number);
    free(text);
    return rc;
}
