/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_requeue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "slurm/ask.h"

#define CONFIG_MOST ((size_t)1 << 18) /* bytes of what scontrol says */
#define ASK_EVERY 5.0                 /* seconds */
#define MISSING 127                   /* status: there is no such program */

/* Is [status] in [list], "75,80-90"? */
static bool list_has(const char *list, int status)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        if (status >= first && status <= last)
            return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

bool srun_requeue_exit(const char *config, int status)
{
    static const char key[] = "RequeueExit ";

    for (const char *line = config; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');

        if (strncmp(line, key, strlen(key)) == 0) {
            line += strcspn(line, "=\n");
            line += strspn(line, "= ");
            return list_has(line, status);
        }
        line = next == NULL ? NULL : next + 1;
    }
    return false;
}

bool srun_requeue_holds(const char *about)
{
    return strstr(about, " ExpeditedRequeue=Yes") != NULL;
}

bool srun_requeue_ending(const char *about)
{
    return strstr(about, " JobState=COMPLETING ") != NULL ||
           strstr(about, " JobState=CANCELLED ") != NULL;
}

/* Ask the controller about [job]. */
static err_code_t job_ask(const slurm_job_t *job, char *said)
{
    const char *const about[] = {"scontrol", "--oneliner", "show",
                                 "job",      job->id,      NULL};

    return slurm_ask(about, said, CONFIG_MOST, NULL);
}

bool srun_job_is_ending(const slurm_job_t *job)
{
    char *said = NULL;
    bool is = false;

    if (mem_new(char, CONFIG_MOST, "scontrol's answer", &said, NULL) == ERR_OK)
        is = job_ask(job, said) == ERR_OK && srun_requeue_ending(said);
    mem_free(said);
    return is;
}

/* Does Slurm requeue [job] if it ends with 75? */
static bool slurm_requeues(const slurm_job_t *job)
{
    const char *const config[] = {"scontrol", "show", "config", NULL};
    char *said = NULL;
    bool does = false;

    if (mem_new(char, CONFIG_MOST, "scontrol's answer", &said, NULL) == ERR_OK)
        does = slurm_ask(config, said, CONFIG_MOST, NULL) == ERR_OK &&
               srun_requeue_exit(said, ERR_REQUEUE) &&
               job_ask(job, said) == ERR_OK && !srun_requeue_holds(said);
    mem_free(said);
    return does;
}

err_code_t srun_requeue(const slurm_job_t *job, srun_signals_t *signals,
                        err_t *err)
{
    const char *const args[] = {"scontrol", "requeue", job->id, NULL};
    const slurm_command_t command = {
        .args = args, .timeout = SLURM_ASK_TIMEOUT, .errors = true};
    const double until = clock_now() + SRUN_REQUEUE_PATIENCE;
    char said[256];
    int status;
    err_code_t rc;

    if (slurm_requeues(job))
        return ERR_OK;
    do {
        rc = slurm_command_read(&command, said, sizeof said, &status, err);
        if ((rc == ERR_OK && status == 0) || signals->ends)
            return ERR_OK;
        if (status != MISSING)
            srun_signals_wait(signals, ASK_EVERY);
    } while (status != MISSING && clock_now() < until);
    if (rc == ERR_OK)
        err_set(err, ERR_UNAVAILABLE, "scontrol requeue %s fails", job->id);
    return err_suffix(err, "the job is not requeued: submit it again, without "
                           "--fresh or --resume; it will resume");
}
