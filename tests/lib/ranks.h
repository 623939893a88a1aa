/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ranks: run N ranks inside a test, without Slurm: as threads of the test's
 * process, or as forked processes that exchange over socket pairs. A rank is a
 * function that gets its out-of-band exchange and answers 0 for success. Test
 * assertions belong to the main thread: ranks use RANKS_CHECK.
 */
#ifndef CDDP_TESTS_LIB_RANKS_H
#define CDDP_TESTS_LIB_RANKS_H

#include <stdio.h>

#include "comm/comm.h"

#define RANKS_MAX 64

/* What ranks_forks finds: the exit code, 128 + signal, or RANKS_KILLED when
 * the rank had not ended by the deadline. */
#define RANKS_KILLED 1000

typedef int (*ranks_main_t)(const comm_oob_t *oob, void *argument);

/* Fail the rank (return 1) with place and condition unless [condition]. */
#define RANKS_CHECK(condition)                                         \
    do {                                                               \
        if (!(condition)) {                                            \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, \
                    #condition);                                       \
            return 1;                                                  \
        }                                                              \
    } while (0)

/* The same for an err_code_t; prints the sentence that [err] holds. */
#define RANKS_OK(code, err)                                           \
    do {                                                              \
        if ((code) != ERR_OK) {                                       \
            fprintf(stderr, "%s:%d: error: %s\n", __FILE__, __LINE__, \
                    (err).text);                                      \
            return 1;                                                 \
        }                                                             \
    } while (0)

/* From here on UCX takes transports that exist on every machine, unless the
 * environment names others. */
void ranks_transports(void);

/* Run [main] as [count] threads of this process; the number of ranks that did
 * not return 0. */
int ranks_threads(int count, ranks_main_t main, void *argument);

/* Run [main] in [count] forked processes; whoever is left after [seconds], or
 * when all that are left have stopped themselves, is killed. results[rank] as
 * above. Returns the number of nonzero results. */
int ranks_forks(int count, double seconds, ranks_main_t main, void *argument,
                int *results);

#endif
