/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/waits.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/ranks.h"

/* A poll and a check never block, and no event tells that they would find
 * something new: so they are repeated, and leave the core to others. */
#define PAUSE 100 /* microseconds */

comm_state_t waits_poll(comm_work_t *work)
{
    while (comm_work_poll(work) == COMM_PENDING)
        usleep(PAUSE);
    return comm_work_poll(work);
}

void waits_fault(comm_group_t *group, err_t *err)
{
    while (comm_group_check(group, err) == ERR_OK)
        usleep(PAUSE);
}

/* ---- the time that this machine needs ------------------------------------ */

#define RANKS 4
#define COUNT 1000000
/* A timeout is at least this multiple of the duration of a whole small run.
 * Under the thread sanitizer the ranks of that run need much less memory than
 * threads of a test (lib/ranks.c), so they are faster. */
#ifdef __SANITIZE_THREAD__
#define TIMEOUT_PER_RUN 8
#else
#define TIMEOUT_PER_RUN 4
#endif

static int run_small(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 300};
    float *data = calloc(COUNT, sizeof *data);
    comm_group_t *group;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int i = 0; i < 4; i++)
        RANKS_OK(
            comm_allreduce(group, data, COUNT, COMM_FLOAT32, COMM_SUM, &err),
            err);
    comm_group_close(group);
    free(data);
    return 0;
}

double waits_timeout(double seconds)
{
    double begin = clock_now();
    int results[RANKS];

    ranks_transports();
    if (ranks_forks(RANKS, 600, run_small, NULL, results) != 0)
        abort(); /* a test whose ranks do not work must fail */
    return fmax(seconds, TIMEOUT_PER_RUN * (clock_now() - begin));
}

double waits_deadline(double timeout)
{
    return 60 + 20 * timeout;
}
