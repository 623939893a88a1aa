/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds the time at which Slurm ends the job. Since Slurm 23.02 the environment
 * has it; for older versions, squeue prints the time left.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "slurm/ask.h"
#include "slurm/job.h"

bool slurm_time_parse(const char *text, double *seconds)
{
    long days = 0, part[3] = {0};
    int parts = 0;
    char *end;

    if (strcmp(text, "UNLIMITED") == 0) {
        *seconds = INFINITY;
        return true;
    }
    const char *dash = strchr(text, '-');
    if (dash != NULL) {
        days = strtol(text, &end, 10);
        if (end != dash || end == text || days < 0)
            return false;
        text = dash + 1;
    }
    for (;;) {
        if (parts == 3 || *text < '0' || *text > '9')
            return false;
        part[parts++] = strtol(text, &end, 10);
        if (*end == '\0')
            break;
        if (*end != ':')
            return false;
        text = end + 1;
    }
    /* The format is [[D-]HH:]MM:SS. */
    if (parts < 2 || (dash != NULL && parts < 3))
        return false;
    if (parts == 2)
        *seconds = (double)part[0] * 60 + (double)part[1];
    else
        *seconds = (double)days * 86400 + (double)part[0] * 3600 +
                   (double)part[1] * 60 + (double)part[2];
    return true;
}

err_code_t slurm_job_find_end(slurm_job_t *job, err_t *err)
{
    const char *const args[] = {"squeue", "-h", "-j", job->id,
                                "-o",     "%L", NULL};
    char line[64] = "";
    double now, left;
    err_code_t rc;

    if (job->end_time > 0 || job->id[0] == '\0')
        return ERR_OK;
    now = clock_wall();
    rc = slurm_ask(args, line, sizeof line, err);
    if (rc != ERR_OK)
        return rc;
    line[strcspn(line, "\n")] = '\0';
    if (!slurm_time_parse(line, &left))
        return err_set(err, ERR_UNAVAILABLE,
                       "squeue says that job %s has '%s' left, expected "
                       "[[D-]HH:]MM:SS or UNLIMITED",
                       job->id, line);
    if (isfinite(left))
        job->end_time = now + left;
    return ERR_OK;
}
