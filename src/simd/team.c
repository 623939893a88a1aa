/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A parallel region is one call of GOMP_parallel. gcc translates `#pragma omp
 * parallel` to this call, and every OpenMP runtime offers it. cddp calls it
 * directly, because clang's -fopenmp would bring a second runtime into the
 * process.
 */
#include "simd/team.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/check.h"
#include "simd/openmp.h"

void GOMP_parallel(void (*body)(void *), void *context, unsigned threads,
                   unsigned flags);

typedef struct simd_team {
    int64_t count;
    int size; /* number of threads of the team */
    simd_team_body_t *body;
    void *context;
    _Atomic int64_t done; /* if CHECK_ON: items given to threads so far */
} simd_team_t;

void simd_team_set(int threads)
{
    if (omp_get_max_threads() != threads)
        omp_set_num_threads(threads);
}

/* global: each thread has its own crew; the number of threads that OpenMP
 * keeps is per thread, too. */
static _Thread_local crew_t *simd_team_crew;

void simd_team_lend(crew_t *crew)
{
    simd_team_crew = crew;
}

/* global: each thread's own number in the team that it works in. */
static _Thread_local int simd_team_place;

/* Run the items of member [number] of [size]. */
static void simd_team_items(simd_team_t *team, int number, int size)
{
    const int64_t first = team->count * number / size;
    const int64_t last = team->count * (number + 1) / size;
    const int outer = simd_team_place;

    check(0 <= number && number < size, "member %d of %d", number, size);
    check(0 <= first && first <= last && last <= team->count,
          "items %" PRId64 " to %" PRId64 " of %" PRId64, first, last,
          team->count);
    simd_team_place = number;
    if (CHECK_ON)
        team->done += last - first;
    if (first < last || size == 1)
        team->body(team->context, first, last);
    simd_team_place = outer;
}

static void simd_team_member(void *argument)
{
    simd_team_items(argument, omp_get_thread_num(), omp_get_num_threads());
}

static void simd_team_crew_member(void *argument, int member)
{
    simd_team_t *team = argument;

    if (member < team->size)
        simd_team_items(team, member, team->size);
}

void simd_team_run(int threads, int64_t count, int64_t grain,
                   simd_team_body_t *body, void *context)
{
    simd_team_t team = {.count = count, .body = body, .context = context};
    int64_t most = grain > 0 ? count / grain : count;

    check(count >= 0 && threads >= 1, "%" PRId64 " items for %d threads", count,
          threads);
    if (most < threads)
        threads = (int)most;
    team.size = threads;
    if (threads <= 1) {
        simd_team_items(&team, 0, 1);
    } else if (simd_team_crew != NULL && !crew_busy(simd_team_crew) &&
               crew_size(simd_team_crew) >= threads) {
        crew_run(simd_team_crew, simd_team_crew_member, &team);
    } else {
        GOMP_parallel(simd_team_member, &team, (unsigned)threads, 0);
    }
    check(team.done == count,
          "%" PRId64 " of %" PRId64 " items were shared out",
          (int64_t)team.done, count);
}

int simd_team_number(void)
{
    return simd_team_place;
}
