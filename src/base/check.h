/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * check: tests a condition that always holds in a correct program, whatever the
 * input: who owns a slot, which lock is held, that parts do not overlap. Checks
 * are on in the tests' build, under sanitizers and with configure
 * --enable-checks; otherwise they cost nothing. Bad input and failing system
 * calls are errors (err.h), never checks.
 *
 * Thread rule: any thread.
 */
#ifndef CDDP_BASE_CHECK_H
#define CDDP_BASE_CHECK_H

/* Print "FILE:LINE: check failed: CONDITION: " and the formatted state to
 * standard error, then abort. */
__attribute__((format(printf, 4, 5), noreturn, cold)) void
check_failed(const char *file, int line, const char *condition,
             const char *format, ...);

/*
 * check(condition, format, ...): the format prints the numbers that explain a
 * failure. The condition must have no side effect: without checks it is
 * compiled, so that it stays correct, but never evaluated.
 */
#ifdef CDDP_CHECKS
#define CHECK_ON 1
#else
#define CHECK_ON 0
#endif
#define check(condition, ...)                                          \
    do {                                                               \
        if (CHECK_ON && !(condition))                                  \
            check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)

#endif
