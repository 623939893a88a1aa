/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/supervise.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

#define CANNOT_EXECUTE 126 /* of a shell, and of srun */
#define NOT_FOUND 127
#define FIRST_SIGNAL 128

/* Seconds to wait after the first, second and third IO error in a row. */
static const double io_waits[] = {10.0, 30.0, 60.0};
#define IO_WAITS ((int)(sizeof io_waits / sizeof io_waits[0]))

/* Longest wait in seconds before srun is started again after it has created no
 * step. The waits are 1, 2, 3 ... s. */
#define LAUNCH_WAIT 30

static bool is_of_cddp(int status)
{
#define IS(name, code, requeue, text) status == (code) ||
    return ERR_MAP(IS) false;
#undef IS
}

int slurm_step_status(int srun_status, int recorded)
{
    const int status = recorded >= 0 ? recorded : srun_status;

    if (is_of_cddp(status) || status == CANNOT_EXECUTE || status == NOT_FOUND)
        return status;
    return ERR_PEER;
}

/* The texts are strerror's, of which every message about a failed system call
 * ends. They are those of the C locale, as no program of cddp sets another. */
bool slurm_io_is_final(const char *text)
{
    const int final[] = {ENOSPC, EDQUOT, EROFS};

    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++)
        if (strstr(text, strerror(final[i])) != NULL)
            return true;
    return false;
}

static slurm_verdict_t end_with(int status, const char *why)
{
    return (slurm_verdict_t){.action = SLURM_END, .status = status, .why = why};
}

static slurm_verdict_t requeue_for(const slurm_ended_t *ended, const char *why)
{
    return (slurm_verdict_t){
        .action = SLURM_REQUEUE, .status = ended->status, .why = why};
}

/* Restart if the time suffices for the wait and the restart; otherwise
 * requeue. */
static slurm_verdict_t again(const slurm_ended_t *ended, double wait)
{
    slurm_verdict_t verdict = {.action = SLURM_RESTART,
                               .status = ended->status,
                               .wait = wait,
                               .why = "restart in place"};

    if (ended->left < ended->needed + wait) {
        verdict.action = SLURM_REQUEUE;
        verdict.why = "the job has too little time left for a restart";
    }
    return verdict;
}

static slurm_verdict_t after_io(const slurm_ended_t *ended)
{
    if (ended->io_final)
        return end_with(ended->status, "waiting makes no room: mend it, then "
                                       "submit the job again; it will resume");
    if (ended->io_failures >= 1 && ended->io_failures <= IO_WAITS) {
        const slurm_verdict_t verdict =
            again(ended, io_waits[ended->io_failures - 1]);

        if (verdict.action == SLURM_RESTART || !ended->io_requeued)
            return verdict;
    }
    if (ended->io_requeued)
        return end_with(ended->status, "the job was already requeued for it");
    return requeue_for(ended, "restarts in place did not help");
}

/* srun has created no step. It gives up at once even if the reason will pass:
 * the controller is away, or has come back and does not know yet what the nodes
 * have. */
static slurm_verdict_t after_nothing(const slurm_ended_t *ended)
{
    const int count = ended->unlaunched;
    slurm_verdict_t verdict;

    if (!ended->launched && count > SLURM_UNLAUNCHED_FIRST)
        return end_with(ERR_UNAVAILABLE, "srun cannot create a step");
    if (count > SLURM_UNLAUNCHED_MOST)
        return requeue_for(ended, "srun cannot create a step any more");
    if (ended->launched && ended->busy > SLURM_UNLAUNCHED_BUSY)
        return requeue_for(ended, "the nodes stay busy, though no step runs");
    verdict = again(ended, count < LAUNCH_WAIT ? count : LAUNCH_WAIT);
    if (verdict.action == SLURM_RESTART)
        verdict.why = "srun created no step, which is tried again";
    return verdict;
}

slurm_verdict_t slurm_decide(const slurm_ended_t *ended)
{
    const int status = ended->status;

    /* Slurm requeues the job itself if it was asked to; after scancel nobody
     * must. */
    if (ended->ended_by_slurm)
        return end_with(status, "Slurm ends the job");
    if (ended->job_gone)
        return end_with(ERR_REQUEUE, "Slurm has ended this job, probably at "
                                     "its time limit: submit it again; it "
                                     "will resume");
    if (ended->unlaunched > 0)
        return after_nothing(ended);
    if (status != ERR_REQUEUE && status != ERR_PEER && status != ERR_IO)
        return end_with(status, err_code_text((err_code_t)status));
    if (ended->fruitless >= SLURM_FRUITLESS_MOST)
        return end_with(ERR_DIVERGED, "no start made progress");
    if (status == ERR_IO)
        return after_io(ended);
    if (status == ERR_PEER)
        return again(ended, 0.0);
    return requeue_for(ended, "asked for it");
}
