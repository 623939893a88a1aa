/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Teams of threads. They belong to the OpenMP runtime that oneDNN uses, so that
 * its kernels and ours share one pool of threads.
 */
#ifndef CDDP_SIMD_TEAM_H
#define CDDP_SIMD_TEAM_H

#include <stdint.h>

#include "base/crew.h"

/* Set the number of threads of the oneDNN primitives that the calling thread
 * runs or creates from now on (oneDNN plans a primitive for the team that it
 * sees at creation). Cheap when the number is the same as before. */
void simd_team_set(int threads);

/* Items [first, last) of the work that [context] describes. */
typedef void simd_team_body_t(void *context, int64_t first, int64_t last);

/*
 * Share items 0 .. count-1 among at most [threads] threads. Each thread gets
 * one contiguous range of at least [grain] items; where there are too few
 * items, fewer threads work. The ranges depend on the number of threads, so the
 * result of an item must not depend on its range. Returns when all items are
 * done.
 */
void simd_team_run(int threads, int64_t count, int64_t grain,
                   simd_team_body_t *body, void *context);

/* In a body: the number of the calling thread in its team, from 0. */
int simd_team_number(void);

/*
 * The calling thread has [crew] at hand: between its jobs, simd_team_run of
 * this thread takes its members instead of OpenMP's, which would keep a core
 * busy for a while after each turn that the crew needs. A team that is larger
 * than the crew is OpenMP's all the same. NULL: no longer.
 */
void simd_team_lend(crew_t *crew);

#endif
