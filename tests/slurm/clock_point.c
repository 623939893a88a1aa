/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A preloaded library, for info.t and seen.t: the time of day of this process
 * is CLOCK_AHEAD seconds ahead, and its monotonic clock is
 * CLOCK_MONOTONIC_AHEAD seconds ahead. (PMIx does not start if only one rank of
 * a step has libfaketime.)
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The seconds by which [clock] is ahead, as a text; NULL: not at all. */
static const char *ahead_of(clockid_t clock)
{
    if (clock == CLOCK_REALTIME)
        return getenv("CLOCK_AHEAD");
    if (clock == CLOCK_MONOTONIC)
        return getenv("CLOCK_MONOTONIC_AHEAD");
    return NULL;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const char *ahead = ahead_of(clock);
    const int rc = (int)syscall(SYS_clock_gettime, clock, out);

    if (rc == 0 && ahead != NULL)
        out->tv_sec += atoi(ahead);
    return rc;
}
