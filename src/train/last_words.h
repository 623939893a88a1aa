/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Last words: UCX ends its process (abort) when the network brings it what no
 * rank sends. The survivors see a rank that died and cannot know why, and no
 * connection is left to tell them. So the rank leaves a file in the run
 * directory, RUNDIR/fell-RANK, before its connections close.
 */
#ifndef CDDP_TRAIN_LAST_WORDS_H
#define CDDP_TRAIN_LAST_WORDS_H

#include <stdbool.h>

#include "base/err.h"

/* What is remembered for the handler of SIGABRT. */
typedef struct train_last_words {
    const char *dir;     /* run directory */
    const char *step_id; /* of this step and its restarts, */
    int restarts;        /* lest words of an earlier one are heard */
    int rank;
    /* Did the thread that aborts do so within the transport? Called in the
     * handler. */
    bool (*guilty)(void);
} train_last_words_t;

/* From now on an abort of this process for which [guilty] answers true says so
 * on standard error and leaves the file. One rank of a process; what was left
 * by an earlier life is removed. Words that are too long are not remembered. */
void train_last_words_arm(const train_last_words_t *words);

/* Has rank [err]->culprit left words of this step in [dir]? Then they are put
 * behind the sentence. */
void train_last_words_hear(const char *dir, const char *step_id, int restarts,
                           err_t *err);

#endif
