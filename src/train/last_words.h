/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * last_words: UCX aborts its process if it receives bytes that no rank sends.
 * The other ranks see that a rank died, but not why, and no connection is left
 * to tell them. So the rank first writes the file RUNDIR/fell-RANK.
 */
#ifndef CDDP_TRAIN_LAST_WORDS_H
#define CDDP_TRAIN_LAST_WORDS_H

#include <stdbool.h>

#include "base/err.h"

/* What the handler of SIGABRT needs to know. */
typedef struct train_last_words {
    const char *dir;     /* run directory */
    const char *step_id; /* Slurm step; with [restarts] it names this life */
    int restarts; /* number of restarts of the job; tells this life from earlier
                     ones */
    int rank;
    /* Returns whether the aborting thread is within the transport. The handler
     * calls it. */
    bool (*in_transport)(void);
} train_last_words_t;

/* Install the handler. From now on, an abort for which [in_transport] returns
 * true prints a line to standard error and writes the file RUNDIR/fell-RANK.
 * Each rank must be a process of its own. The file of an earlier life is
 * removed. If a text is too long, nothing is installed. */
void train_last_words_install(const train_last_words_t *words);

/* If rank [err]->culprit wrote its file in this life, append the reason to the
 * message of [err]. */
void train_last_words_add(const char *dir, const char *step_id, int restarts,
                          err_t *err);

#endif
