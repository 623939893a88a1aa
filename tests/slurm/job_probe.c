/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * job_probe [SIGNALS]: the program that job.t runs under srun. It prints the
 * job's data as job.h reports it, waits until SIGNALS ("checkpoint" or "term")
 * is pending if that is given, and writes an exit record to the current
 * directory.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "slurm/limits.h"

static const char *lookup(const char *name)
{
    return getenv(name);
}

/* Sleep until the signal is pending; alarm() ends a process that is left over.
 * Signals are blocked except during the sleep, so that none is missed. */
static void wait_signal(slurm_signal_t wanted)
{
    sigset_t every, before;

    alarm(60);
    sigfillset(&every);
    sigprocmask(SIG_BLOCK, &every, &before);
    while (slurm_signal_pending() != wanted)
        sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("got it\n");
}

static err_code_t probe(const char *wanted, err_t *err)
{
    slurm_exit_t record = {.status = ERR_REQUEUE, .culprit = -1, .step = 5};
    slurm_limits_t limits;
    slurm_job_t job;
    err_code_t code = slurm_job_read(lookup, &job, err);

    if (code == ERR_OK)
        code = slurm_limits_ask(&job, NULL, &limits, err);
    if (code == ERR_OK)
        code = slurm_signal_install(err);
    if (code != ERR_OK)
        return code;
    printf("job %s step %s tasks %d restarts %d host %s left %.0f\n", job.id,
           job.step_id, job.tasks, job.restarts, job.host,
           isinf(limits.end) ? -1 : limits.end - clock_now());
    fflush(stdout);
    if (wanted != NULL)
        wait_signal(strcmp(wanted, "term") == 0 ? SLURM_SIGNAL_TERM
                                                : SLURM_SIGNAL_CHECKPOINT);
    record.job = &job;
    return slurm_exit_write(".", &record, err);
}

int main(int argc, char **argv)
{
    err_t err = ERR_INIT;

    if (probe(argc > 1 ? argv[1] : NULL, &err) != ERR_OK)
        fprintf(stderr, "%s\n", err.text);
    return (int)err.code;
}
