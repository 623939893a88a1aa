/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Time. Durations and instants are double seconds; instants are monotonic. */
#ifndef CDDP_BASE_CLOCK_H
#define CDDP_BASE_CLOCK_H

#include <stddef.h>

/* Seconds on the monotonic clock (arbitrary origin). */
double clock_now(void);

/* Seconds since this process was started by the kernel (exec). */
double clock_since_start(void);

/* Wall-clock seconds since 1970. */
double clock_wall(void);

/* "2031-05-04T10:20:30Z" for the wall-clock [instant], into [out]. */
char *clock_format(double instant, char *out, size_t room);

#endif
