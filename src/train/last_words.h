/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * last_words: UCX aborts its process if it receives bytes that no rank sends.
 * The other ranks see that a rank died, but not why, and no connection is left
 * to tell them. So the dying rank first writes the file RUNDIR/fell-RANK.
 */
#ifndef CDDP_TRAIN_LAST_WORDS_H
#define CDDP_TRAIN_LAST_WORDS_H

#include <stdbool.h>

#include "base/err.h"

/* What the handler of SIGABRT needs. */
typedef struct train_last_words {
    const char *dir;     /* run directory */
    const char *step_id; /* Slurm step; with [restarts] it tells this life */
    int restarts;        /* from earlier ones */
    int rank;
    /* Is the aborting thread within the transport? Called in the handler. */
    bool (*guilty)(void);
} train_last_words_t;

/* Install the handler. From now on, an abort for which [guilty] is true prints
 * a line to standard error and writes the file. One rank per process. The file
 * of an earlier life is removed. Nothing is installed if a text is too long. */
void train_last_words_arm(const train_last_words_t *words);

/* If rank [err]->culprit has left its file in this life, append the reason to
 * the message of [err]. */
void train_last_words_hear(const char *dir, const char *step_id, int restarts,
                           err_t *err);

#endif
