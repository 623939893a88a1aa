/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Finds the best classifier that compares one score with one threshold. */
#ifndef CDDP_CMD_DATA_BOUND_H
#define CDDP_CMD_DATA_BOUND_H

#include <stdint.h>

#include "base/err.h"

/* One sample: its score and its true label (0 or 1). */
typedef struct cmd_bound_item {
    int score;
    int label;
} cmd_bound_item_t;

/* Accuracy of the best rule of the form "label 1 where score <= threshold" over
 * [count] > 0 items. Every threshold is tried. Sorts [items]. */
double cmd_bound_best(cmd_bound_item_t *items, int64_t count);

#endif
