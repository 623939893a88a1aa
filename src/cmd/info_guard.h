/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * guard: ends this process if it hangs. A call to a file system whose server is
 * away may never return, and then no other thread can end it but by ending the
 * process.
 *
 * Thread rule: one thread opens, reports and closes.
 */
#ifndef CDDP_CMD_INFO_GUARD_H
#define CDDP_CMD_INFO_GUARD_H

#include "base/err.h"

typedef struct info_guard info_guard_t;

/* Start a thread that ends the process with ERR_PEER and a line on standard
 * error, which names [rank] and its phase, once [seconds] have passed without a
 * report. ERR_MEMORY. */
err_code_t info_guard_open(int rank, double seconds, info_guard_t **out,
                           err_t *err);

/* The rank begins [phase], a static text: "fsync". */
void info_guard_report(info_guard_t *guard, const char *phase);

/* NULL is allowed. */
void info_guard_close(info_guard_t *guard);

#endif
