/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* place_checks: what is true of every place, compared bit by bit with that of
 * the host. A check fails the test that calls it. */
#ifndef TESTS_OPTIM_PLACE_CHECKS_H
#define TESTS_OPTIM_PLACE_CHECKS_H

#include "optim/place_rig.h"

typedef struct place {
    const char *backend;
    int index;
} place_t;

/* Groups, frozen parameters, both kinds of clipping, a moving average, and an
 * optimizer with norms of tensors. */
extern const place_config_t place_full;

/* Every optimizer, alone, and with all of place_full. */
void place_check_updates(const place_t *place);
/* Groups that use other slots than the rest. */
void place_check_groups(const place_t *place);
/* Every optimizer on ranges of the arena. The sums over tensors are those of
 * this rank alone. */
void place_check_ranges(const place_t *place);
/* Steps with and without an update. */
void place_check_verdicts(const place_t *place);
/* Norms of many lengths, in one piece and in parts; flags; scaling. */
void place_check_norms(const place_t *place);
/* A captured step, launched with other gradients, rates and numbers. */
void place_check_replay(const place_t *place);

#endif
