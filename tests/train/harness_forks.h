/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs of the harness whose ranks are processes. */
#ifndef CDDP_TESTS_TRAIN_HARNESS_FORKS_H
#define CDDP_TESTS_TRAIN_HARNESS_FORKS_H

#include "lib/ranks.h"
#include "train/harness.h"

typedef struct harness_forks {
    const harness_t *harness;
    /* (optional) Each rank calls this before the run, for its own settings. */
    void (*prepare)(int rank, int ranks, void *context);
    void *context;
    double seconds; /* a rank that takes longer is killed */
} harness_forks_t;

/* Run on [ranks] processes. results[rank] is the code of the rank's error, or
 * what ranks_forks says. texts[rank] is the culprit and then the sentence, for
 * example "1: ..."; the culprit is -1 if there is none. */
void harness_forks_run(const harness_forks_t *forks, int ranks, int *results,
                       char (*texts)[512]);

#endif
