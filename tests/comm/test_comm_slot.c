/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Zero-copy collectives of a group on one node, whose slots are reused
 * (src/comm/node/node_zcopy.h). */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm_ops.h"
#include "comm/waits.h"
#include "lib/ranks.h"

TestSuite(comm_slot, .init = ranks_transports, .timeout = 1800);

/* ---- a late rank --------------------------------------------------------- */

#define WORKS COMM_WORKS_MAX
#define MOST 3000
#define AGAIN 20

static size_t work_count(int which)
{
    return 1025 + (size_t)which * 97 % (MOST - 1025);
}

static float work_value(int rank, int which, size_t i)
{
    return 0.1f * (float)(rank + 1) + (float)((i + (size_t)which) % 53);
}

static int work_start(comm_group_t *group, float *data, int which,
                      comm_work_t **work)
{
    err_t err = ERR_INIT;

    for (size_t i = 0; i < work_count(which); i++)
        data[i] = work_value(comm_group_rank(group), which, i);
    RANKS_CHECK(comm_allreduce_start(group, data, work_count(which),
                                     COMM_FLOAT32, COMM_SUM, work,
                                     &err) != COMM_FAILED);
    return 0;
}

static int work_end(comm_group_t *group, const float *data, int which,
                    comm_work_t *work)
{
    err_t err = ERR_INIT;

    RANKS_OK(comm_work_wait(work, &err), err);
    for (size_t i = 0; i < work_count(which); i++) {
        float sum = work_value(0, which, i);

        for (int rank = 1; rank < comm_group_size(group); rank++)
            sum += work_value(rank, which, i);
        RANKS_CHECK(data[i] == sum);
    }
    return 0;
}

/* Rank 0 starts as many works as a group may have in flight and then does not
 * look at them. The other ranks do its share, and begin to reuse the slots,
 * before rank 0 looks at its works. */
static int run_late(const comm_oob_t *oob, void *argument)
{
    const int *ends = argument;
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_work_t *works[WORKS], *again[AGAIN];
    comm_group_t *group;
    comm_arena_t *arena;
    float *data;
    char byte = 0;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, (WORKS + AGAIN) * MOST * sizeof *data,
                             &arena, &err),
             err);
    data = comm_arena_data(arena);
    RANKS_CHECK(strcmp(comm_allreduce_name(group, data, MOST, COMM_FLOAT32),
                       "node") == 0);
    for (int i = 0; i < WORKS; i++)
        if (work_start(group, data + i * MOST, i, &works[i]))
            return 1;
    for (int i = 1; oob->rank == 0 && i < oob->size; i++)
        RANKS_CHECK(read(ends[0], &byte, 1) == 1);
    for (int i = WORKS; oob->rank == 0 && --i >= 0;)
        if (work_end(group, data + i * MOST, i, works[i]))
            return 1;
    for (int i = 0; oob->rank > 0 && i < WORKS; i++)
        if (work_end(group, data + i * MOST, i, works[i]))
            return 1;
    for (int i = 0; i < AGAIN; i++)
        if (work_start(group, data + (WORKS + i) * MOST, i, &again[i]))
            return 1;
    RANKS_CHECK(oob->rank == 0 || write(ends[1], &byte, 1) == 1);
    for (int i = 0; i < AGAIN; i++)
        if (work_end(group, data + (WORKS + i) * MOST, i, again[i]))
            return 1;
    comm_arena_close(arena);
    comm_group_close(group);
    return 0;
}

Test(comm_slot, a_late_rank_holds_nobody_up)
{
    int results[RANKS_MAX], ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(ranks_threads(3, run_late, ends), 0);
    cr_assert_eq(ranks_forks(2, 600, run_late, ends, results), 0);
    cr_assert_eq(ranks_forks(5, 600, run_late, ends, results), 0);
}

/* ---- works in another order ---------------------------------------------- */

/* How rank 1 spends its time between the two works. */
typedef struct away {
    double timeout;
    bool stuck; /* it does not report progress */
} away_t;

/* Rank 1 completes the first work, stays away for longer than the timeout for
 * works without progress, and only then starts the second work. */
static int be_away(comm_group_t *group, float *data, const away_t *away)
{
    const double end = clock_now() + 3 * away->timeout;
    comm_work_t *work;
    err_t err = ERR_INIT;

    if (work_start(group, data, 0, &work) || work_end(group, data, 0, work))
        return 1;
    while (clock_now() < end && comm_group_check(group, &err) == ERR_OK) {
        if (!away->stuck)
            comm_group_report(group, 7, "evaluation");
        usleep(10000); /* away on purpose: how long is what is tested */
    }
    if (away->stuck) {
        RANKS_CHECK(err.culprit == 1);
        return 0;
    }
    if (work_start(group, data + MOST, 1, &work))
        return 1;
    return work_end(group, data + MOST, 1, work);
}

/* Rank 0 has started both works and waits for the second one first. */
static int wait_backwards(comm_group_t *group, float *data, const away_t *away)
{
    comm_work_t *works[2];
    err_t err = ERR_INIT;

    for (int i = 0; i < 2; i++)
        if (work_start(group, data + i * MOST, i, &works[i]))
            return 1;
    if (away->stuck) {
        RANKS_CHECK(comm_work_wait(works[1], &err) == ERR_PEER);
        RANKS_CHECK(err.culprit == 1);
        RANKS_CHECK(comm_work_wait(works[0], &err) != ERR_OK);
        return 0;
    }
    return work_end(group, data + MOST, 1, works[1]) ||
           work_end(group, data, 0, works[0]);
}

static int run_backwards(const comm_oob_t *oob, void *argument)
{
    const away_t *away = argument;
    comm_config_t config = {.backend = "ucx", .timeout = away->timeout};
    comm_group_t *group;
    comm_arena_t *arena;
    float *data;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, 2 * MOST * sizeof *data, &arena, &err),
             err);
    data = comm_arena_data(arena);
    failed = oob->rank == 0 ? wait_backwards(group, data, away)
                            : be_away(group, data, away);
    comm_arena_close(arena);
    comm_group_close(group);
    return failed;
}

/* The first work counts as done once the other rank has completed it, even if
 * this rank has not looked. Rank 0 therefore waits for rank 1, and reports it
 * if it is stuck, but not if it is busy. */
Test(comm_slot, who_waits_for_a_later_work_waits_for_the_right_one)
{
    int results[RANKS_MAX];
    away_t away = {.timeout = waits_timeout(0.6)};
    const double deadline = waits_deadline(away.timeout);

    cr_assert_eq(ranks_forks(2, deadline, run_backwards, &away, results), 0);
    away.stuck = true;
    (void)ranks_forks(2, deadline, run_backwards, &away, results);
    /* rank 1 may be killed before it has learnt of the fault */
    cr_assert_eq(results[0], 0);
}
