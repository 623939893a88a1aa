/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Time. Durations and instants are doubles in seconds; instants are on the
 * monotonic clock. */
#ifndef CDDP_BASE_CLOCK_H
#define CDDP_BASE_CLOCK_H

#include <stddef.h>

/* Seconds on the monotonic clock (arbitrary origin). */
double clock_now(void);

/* Seconds since the kernel started this process (exec); 0 if /proc does not
 * tell. */
double clock_since_start(void);

/* Wall-clock seconds since 1970. */
double clock_wall(void);

/* Write the wall-clock [instant] in UTC as "2031-05-04T10:20:30Z" to [out] of
 * [room] bytes, which is returned; "" if it does not fit. */
char *clock_format(double instant, char *out, size_t room);

#endif
