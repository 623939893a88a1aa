/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* Bytes of the output of `scontrol show config` or `show job`. */
#define ANSWER_MOST ((size_t)1 << 18)

slurm_limits_t slurm_limits_none(void)
{
    return (slurm_limits_t){.end = INFINITY, .kill_wait = NAN};
}

/* The number behind the first [key] in [text]; NAN: there is none. */
static double number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    char *end;
    double value;

    if (at == NULL)
        return NAN;
    at += strlen(key);
    value = strtod(at, &end);
    return end == at ? NAN : value;
}

/* `scontrol show config` says "KillWait                = 30 sec". */
static double kill_wait_of(const char *config)
{
    const char *at = strstr(config, "\nKillWait ");

    if (at == NULL)
        return NAN;
    at += strcspn(at + 1, "=\n") + 1;
    return *at == '=' ? number_after(at, "=") : NAN;
}

bool slurm_limits_parse(const char *job, const char *config, double now,
                        slurm_limits_t *out)
{
    const double end = number_after(job, " EndTime=");
    const double asked = number_after(config, "Configuration data as of ");
    slurm_limits_t limits = slurm_limits_none();

    limits.kill_wait = kill_wait_of(config);
    if (strstr(job, " EndTime=Unknown") == NULL) {
        if (!isfinite(end) || !isfinite(asked))
            return false;
        limits.end = now + (end - asked);
    }
    *out = limits;
    return true;
}

/* Ask scontrol for one thing. `env` sets a variable for the command only. `env`
 * is named by its path: a search along PATH would read the environment of this
 * process, which other threads may change. */
static err_code_t show(const slurm_command_t *how, const char *what,
                       const char *id, char *out, err_t *err)
{
    const char *const args[] = {"/usr/bin/env",
                                "SLURM_TIME_FORMAT=%s",
                                "scontrol",
                                "--oneliner",
                                "show",
                                what,
                                id,
                                NULL};
    const slurm_command_t command = {.args = args,
                                     .timeout = SLURM_ASK_TIMEOUT,
                                     .cancel = how != NULL ? how->cancel : 0,
                                     .env = how != NULL ? how->env : NULL};
    int status = 0;
    err_code_t rc =
        slurm_command_read(&command, out, ANSWER_MOST, &status, err);

    if (rc == ERR_OK && status != 0)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "scontrol show %s failed: is scontrol in PATH, and is the "
                     "controller reachable?",
                     what);
    return rc;
}

err_code_t slurm_limits_ask(const slurm_job_t *job, const slurm_command_t *how,
                            slurm_limits_t *out, err_t *err)
{
    char *about = NULL, *config = NULL;
    err_code_t rc;

    *out = slurm_limits_none();
    if (job->id[0] == '\0')
        return ERR_OK;
    rc = mem_new(char, ANSWER_MOST, "scontrol's answer", &about, err);
    if (rc == ERR_OK)
        rc = mem_new(char, ANSWER_MOST, "scontrol's answer", &config, err);
    if (rc == ERR_OK)
        rc = show(how, "job", job->id, about, err);
    if (rc == ERR_OK)
        rc = show(how, "config", NULL, config, err);
    if (rc == ERR_OK && !slurm_limits_parse(about, config, clock_now(), out))
        rc = err_set(err, ERR_UNAVAILABLE,
                     "scontrol show job %s says '%.80s', expected EndTime=",
                     job->id, about);
    mem_free(config);
    mem_free(about);
    return rc;
}
