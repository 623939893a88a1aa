/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A preloaded library, for info.t and seen.t: the time of day of this process
 * is as many seconds ahead as CLOCK_AHEAD says, its monotonic clock as
 * CLOCK_MONOTONIC_AHEAD says. (With libfaketime in one rank of a step only,
 * PMIx does not start.)
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const char *ahead = clock == CLOCK_REALTIME    ? getenv("CLOCK_AHEAD")
                        : clock == CLOCK_MONOTONIC ? getenv("CLOCK_MONOTONIC_"
                                                            "AHEAD")
                                                   : NULL;
    const int rc = (int)syscall(SYS_clock_gettime, clock, out);

    if (rc == 0 && ahead != NULL)
        out->tv_sec += atoi(ahead);
    return rc;
}
