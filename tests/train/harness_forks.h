/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs of the harness whose ranks are processes. */
#ifndef CDDP_TESTS_TRAIN_HARNESS_FORKS_H
#define CDDP_TESTS_TRAIN_HARNESS_FORKS_H

#include "lib/ranks.h"
#include "train/harness.h"

typedef struct harness_forks {
    const harness_t *harness;
    /* (optional) Called in each rank before the run, for its settings. */
    void (*prepare)(int rank, int ranks, void *context);
    void *context;
    double seconds; /* after which a rank is killed */
} harness_forks_t;

/* Run on [ranks] processes. results[rank] is the code of its error, or as
 * ranks_forks says; texts[rank] begins with the culprit ("1: ", "-1: "), then
 * comes the sentence. */
void harness_forks_run(const harness_forks_t *forks, int ranks, int *results,
                       char (*texts)[512]);

#endif
