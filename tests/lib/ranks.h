/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ranks: runs N ranks inside a test without Slurm, as threads of the test's
 * process or as forked processes that exchange over socket pairs. A rank is a
 * function that gets its out-of-band exchange and returns 0 for success.
 * Criterion's assertions work in the main thread only: ranks use RANKS_CHECK.
 */
#ifndef CDDP_TESTS_LIB_RANKS_H
#define CDDP_TESTS_LIB_RANKS_H

#include <stdio.h>

#include "comm/comm.h"

#define RANKS_MAX 64

/* Result of a rank in ranks_forks: its exit code, 128 + signal, or RANKS_KILLED
 * if it had not ended by the deadline. */
#define RANKS_KILLED 1000

typedef int (*ranks_main_t)(const comm_oob_t *oob, void *argument);

/* Unless [condition] is true, print place and condition and return 1 from the
 * rank. */
#define RANKS_CHECK(condition)                                         \
    do {                                                               \
        if (!(condition)) {                                            \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, \
                    #condition);                                       \
            return 1;                                                  \
        }                                                              \
    } while (0)

/* Like RANKS_CHECK for an err_code_t; prints the message in [err]. */
#define RANKS_OK(code, err)                                           \
    do {                                                              \
        if ((code) != ERR_OK) {                                       \
            fprintf(stderr, "%s:%d: error: %s\n", __FILE__, __LINE__, \
                    (err).text);                                      \
            return 1;                                                 \
        }                                                             \
    } while (0)

/* From here on UCX uses transports that exist on every machine, unless the
 * environment names others. */
void ranks_transports(void);

/* Run [main] in [count] threads of this process. Returns the number of ranks
 * that did not return 0. */
int ranks_threads(int count, ranks_main_t main, void *argument);

/* Run [main] in [count] forked processes. Ranks that have not ended after
 * [seconds] are killed, and so are the remaining ranks if all of them have
 * stopped themselves. results[rank] is described above. Returns the number of
 * nonzero results. */
int ranks_forks(int count, double seconds, ranks_main_t main, void *argument,
                int *results);

#endif
