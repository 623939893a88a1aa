/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads what Slurm tells a step through environment variables. */
#include "slurm/job.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

typedef const char *(*lookup_t)(const char *name);

/* Read the whole number in the variable [name]; [fallback] if the variable is
 * unset or empty. */
static err_code_t read_int(lookup_t lookup, const char *name, int64_t fallback,
                           int64_t *out, err_t *err)
{
    const char *text = lookup(name);

    if (text == NULL || text[0] == '\0') {
        *out = fallback;
        return ERR_OK;
    }
    if (!str_to_int(text, out) || *out < 0)
        return err_set(err, ERR_CONFIG,
                       "environment: %s is '%s', expected a whole number (is "
                       "this really a Slurm job?)",
                       name, text);
    return ERR_OK;
}

/* Set the ids of job, array task and step. The id of an array job is
 * "FIRST_INDEX", where FIRST is the id of the whole array. */
static void read_id(lookup_t lookup, slurm_job_t *job)
{
    const char *id = lookup("SLURM_JOB_ID");
    const char *first = lookup("SLURM_ARRAY_JOB_ID");
    const char *index = lookup("SLURM_ARRAY_TASK_ID");
    const char *step = lookup("SLURM_STEP_ID");
    const char *nodes = lookup("SLURM_STEP_NODELIST");

    /* A user may set the index without Slurm, to train one line of a sweep. */
    if (index != NULL)
        snprintf(job->array, sizeof job->array, "%s", index);
    if (id == NULL)
        return;
    if (first != NULL && index != NULL)
        snprintf(job->id, sizeof job->id, "%s_%s", first, index);
    else
        snprintf(job->id, sizeof job->id, "%s", id);
    if (nodes != NULL)
        snprintf(job->nodes, sizeof job->nodes, "%s", nodes);
    if (step != NULL)
        snprintf(job->step_id, sizeof job->step_id, "%s.%s", id, step);
}

err_code_t slurm_job_read(const char *(*lookup)(const char *name),
                          slurm_job_t *out, err_t *err)
{
    slurm_job_t job = {.tasks = 1};
    int64_t tasks = 1, restarts = 0, attempt = 1;
    err_code_t rc;

    rc = read_int(lookup, "SLURM_STEP_NUM_TASKS", 1, &tasks, err);
    if (rc == ERR_OK)
        rc = read_int(lookup, "SLURM_RESTART_COUNT", 0, &restarts, err);
    if (rc == ERR_OK)
        rc = read_int(lookup, "CDDP_ATTEMPT", 1, &attempt, err);
    if (rc != ERR_OK)
        return rc;
    read_id(lookup, &job);
    job.tasks = (int)tasks;
    job.restarts = (int)restarts;
    job.attempt = (int)attempt;
    if (gethostname(job.host, sizeof job.host - 1) != 0)
        snprintf(job.host, sizeof job.host, "?");
    *out = job;
    return ERR_OK;
}
