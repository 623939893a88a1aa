/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/dir_name.h"

#include <string.h>

#include "base/str.h"

#define KNOWN                                                              \
    "known are {name} (run.name), {array} (the number of the task in its " \
    "Slurm array) and {job} (the Slurm job's id)"

/* A word in braces, and its value for a job. */
typedef struct dir_word {
    const char *name;
    const char *value; /* "": this job has none; NULL: job not known yet */
    const char *lack;  /* in messages: why there is no value, how to get one */
} dir_word_t;

/* Append the value of the word of [length] bytes at [at]; [pattern] is for
 * messages. */
static err_code_t word_add(const char *pattern, const char *at, size_t length,
                           const dir_word_t *words, str_buf_t *out, err_t *err)
{
    for (; words->name != NULL; words++)
        if (strlen(words->name) == length &&
            memcmp(words->name, at, length) == 0)
            break;
    if (words->name == NULL)
        return err_set(err, ERR_CONFIG, "is \"%s\", and {%.*s} is unknown; %s",
                       pattern, (int)length, at, KNOWN);
    if (words->value == NULL)
        str_buf_add(out, "{%s}", words->name);
    else if (words->value[0] != '\0')
        str_buf_add(out, "%s", words->value);
    else
        return err_set(err, ERR_CONFIG,
                       "is \"%s\", but %s; or give another directory with "
                       "--set run.dir=DIR",
                       pattern, words->lack);
    return ERR_OK;
}

/* Refuse control characters, as --print-rundir prints the path unchanged,
 * perhaps to a terminal. */
static err_code_t control_check(const char *path, err_t *err)
{
    for (const char *c = path; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            return err_set(err, ERR_CONFIG,
                           "is \"%s\", which holds a control character: give "
                           "the directory (or run.name) a name without any",
                           path);
    return ERR_OK;
}

err_code_t train_dir_name(const char *pattern, const char *name,
                          const slurm_job_t *job, char **out, err_t *err)
{
    const dir_word_t words[] = {
        {"name", name, "run.name is empty: give the run a name"},
        {"array", job == NULL ? NULL : job->array,
         "this is no task of a Slurm array (SLURM_ARRAY_TASK_ID is not set): "
         "submit it with sbatch --array"},
        {"job", job == NULL ? NULL : job->id,
         "this is no Slurm job (SLURM_JOB_ID is not set): submit it with "
         "sbatch"},
        {NULL, NULL, NULL}};
    const char *at, *end;
    str_buf_t text = {0};
    err_code_t rc = ERR_OK;

    if (pattern[0] == '\0')
        pattern = job != NULL && job->array[0] != '\0' ? "runs/{name}-{array}"
                                                       : "runs/{name}";
    for (at = pattern; rc == ERR_OK && *at != '\0'; at = end) {
        end = at + (*at == '{' ? strcspn(at, "}") : strcspn(at, "{"));
        if (*at != '{') {
            str_buf_add(&text, "%.*s", (int)(end - at), at);
        } else if (*end == '\0') {
            rc = err_set(err, ERR_CONFIG, "is \"%s\", whose { has no }; %s",
                         pattern, KNOWN);
        } else {
            rc = word_add(pattern, at + 1, (size_t)(end - at - 1), words, &text,
                          err);
            end++;
        }
    }
    if (rc == ERR_OK)
        rc = control_check(text.text, err);
    if (rc == ERR_OK)
        *out = text.text;
    else
        str_buf_free(&text);
    return rc;
}
