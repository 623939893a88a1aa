/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Teams of threads. They belong to the OpenMP runtime that oneDNN uses, so
 * that oneDNN and cddp share one pool of threads.
 */
#ifndef CDDP_SIMD_TEAM_H
#define CDDP_SIMD_TEAM_H

#include <stdint.h>

#include "base/crew.h"

/* Set the number of threads for the oneDNN primitives that the calling thread
 * runs or creates from now on. oneDNN plans a primitive for the number of
 * threads at its creation. Cheap if the number does not change. */
void simd_team_set(int threads);

/* Process items [first, last) of the work that [context] describes. */
typedef void simd_team_body_t(void *context, int64_t first, int64_t last);

/*
 * Divide items 0 .. count-1 among at most [threads] threads. Each thread gets
 * one contiguous range of at least [grain] items; if there are too few items,
 * fewer threads work. The ranges depend on the number of threads, so the
 * result of an item must not depend on its range. Returns when all items are
 * done.
 */
void simd_team_run(int threads, int64_t count, int64_t grain,
                   simd_team_body_t *body, void *context);

/* In a body: number of the calling thread in its team, from 0. */
int simd_team_number(void);

/*
 * From now on, simd_team_run of the calling thread uses the threads of [crew]
 * instead of OpenMP's while the crew has no job. After a parallel region
 * OpenMP's threads would keep a core busy for a while, which the crew needs. A
 * team that is larger than the crew still uses OpenMP's threads. NULL: stop
 * using a crew.
 */
void simd_team_lend(crew_t *crew);

#endif
