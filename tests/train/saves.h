/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* saves: the run of the tests of checkpoint.async and of failed saves. */
#ifndef CDDP_TESTS_TRAIN_SAVES_H
#define CDDP_TESTS_TRAIN_SAVES_H

#include "train/harness.h"

#define SAVES_STEPS 10 /* of the run */

/* harness_open for a run of two epochs of 5 steps, which keeps all its
 * checkpoints. [async], [every] and [more] (or NULL) are settings. */
void saves_open(harness_t *harness, const char *async, const char *every,
                const char *more);

/* Number of entries of the run's checkpoints whose names begin with [prefix].
 * "." and ".." are not counted. */
int saves_count(const harness_t *harness, const char *prefix);

#endif
