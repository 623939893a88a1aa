/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double clock_read(clockid_t which)
{
    struct timespec now;

    clock_gettime(which, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

double clock_wall(void)
{
    return clock_read(CLOCK_REALTIME);
}

/* Field 22 of /proc/self/stat is the start time in clock ticks after boot. The
 * command name in field 2 may contain spaces, so fields are counted from its
 * closing ')'. */
double clock_since_start(void)
{
    char line[1024];
    unsigned long long ticks;
    const char *at;
    FILE *file = fopen("/proc/self/stat", "re");
    size_t length;
    double since;

    if (file == NULL)
        return 0;
    length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    at = strrchr(line, ')');
    if (at == NULL || sscanf(at,
                             ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                             "%*u %*u %*d %*d %*d %*d %*d %*d %llu",
                             &ticks) != 1)
        return 0;
    since = clock_read(CLOCK_BOOTTIME) -
            (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return since > 0 ? since : 0;
}

char *clock_format(double instant, char *out, size_t room)
{
    time_t seconds = (time_t)instant;
    struct tm parts;

    if (room > 0 && (gmtime_r(&seconds, &parts) == NULL ||
                     strftime(out, room, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0))
        out[0] = '\0'; /* strftime leaves the buffer undefined on failure */
    return out;
}
