/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage without a group: ranks are threads with plain callbacks. */
#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/node/node_ranks.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_wakeup.h"
#include "comm/node/node_zcopy.h"

TestSuite(node, .timeout = 120);

#define ONESHOT 700   /* elements */
#define STAGED 200003 /* several times what a rank can stage at a time */
#define ZCOPY 100003

static void fill(const node_rank_t *rank, uint64_t which, float *data,
                 size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = node_rank_value(rank->oob->rank, which, i);
}

static int check_sum(const node_rank_t *rank, uint64_t which, const float *data,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        RANKS_CHECK(data[i] == node_rank_sum(rank->oob->size, which, i));
    return 0;
}

static int wait_well(node_rank_t *rank, node_work_t *work)
{
    RANKS_CHECK(node_wait(rank->node, work));
    RANKS_CHECK(!node_work_is_active(work));
    return 0;
}

/* ---- sums ---------------------------------------------------------------- */

/* Collectives of all three kinds and a barrier in flight at once, waited for
 * from the last to the first; more works than any ring has slots. */
static int run_ways(const comm_oob_t *oob, void *argument)
{
    float *small = calloc(ONESHOT, sizeof *small);
    float *large = calloc(STAGED, sizeof *large), *shared;
    node_rank_t *rank;
    node_arena_t *arena;
    err_t err = ERR_INIT;

    if (node_rank_open(argument, oob, &rank))
        return 1;
    RANKS_OK(node_arena_open(rank->node, ZCOPY * sizeof *shared, &arena, &err),
             err);
    shared = arena->data;
    RANKS_CHECK(node_arena_holds(rank->node, shared + 3, 8));
    RANKS_CHECK(!node_arena_holds(rank->node, shared + ZCOPY, 4));
    RANKS_CHECK(!node_arena_holds(rank->node, small, 4));
    for (uint64_t i = 0; i < 90; i++) {
        node_work_t *works[4];

        fill(rank, i, small, ONESHOT);
        fill(rank, i + 1, large, i % 9 ? 3000 : STAGED);
        fill(rank, i + 2, shared, i % 9 ? 5000 : ZCOPY);
        works[0] = node_rank_start(rank, NODE_ONESHOT, small, ONESHOT);
        works[1] =
            node_rank_start(rank, NODE_STAGED, large, i % 9 ? 3000 : STAGED);
        works[2] =
            node_rank_start(rank, NODE_ZCOPY, shared, i % 9 ? 5000 : ZCOPY);
        works[3] = node_rank_start(rank, NODE_ONESHOT, NULL, 0);
        while (i % 4 == 0 && node_poll(rank->node, works[1]) == COMM_PENDING)
            sched_yield(); /* no event tells a caller that only polls */
        for (int j = 4; --j >= 0;)
            if (wait_well(rank, works[j]))
                return 1;
        if (check_sum(rank, i, small, ONESHOT) ||
            check_sum(rank, i + 1, large, i % 9 ? 3000 : STAGED) ||
            check_sum(rank, i + 2, shared, i % 9 ? 5000 : ZCOPY))
            return 1;
    }
    RANKS_CHECK(node_progress_count(rank->node) >= 4 * 90);
    node_arena_close(rank->node, arena);
    node_rank_close(rank);
    free(small);
    free(large);
    return 0;
}

Test(node, every_way_sums_in_rank_order)
{
    node_ranks_t all;

    for (int size = 2; size <= 5; size++) {
        node_ranks_init(&all, NULL);
        cr_assert_eq(ranks_threads(size, run_ways, &all), 0, "%d ranks", size);
    }
}

/* More one-shot collectives in flight than a rank has slots. */
static int run_many(const comm_oob_t *oob, void *argument)
{
    enum { MANY = 100, COUNT = 9 };
    static _Thread_local float data[MANY][COUNT];
    node_work_t *works[MANY];
    node_rank_t *rank;

    if (node_rank_open(argument, oob, &rank))
        return 1;
    for (uint64_t i = 0; i < MANY; i++) {
        fill(rank, i, data[i], COUNT);
        works[i] = node_rank_start(rank, NODE_ONESHOT, data[i], COUNT);
    }
    for (uint64_t i = MANY; i-- > 0;)
        if (wait_well(rank, works[i]) || check_sum(rank, i, data[i], COUNT))
            return 1;
    node_rank_close(rank);
    return 0;
}

Test(node, more_one_shots_than_slots)
{
    node_ranks_t all;

    for (int size = 2; size <= 3; size++) {
        node_ranks_init(&all, NULL);
        cr_assert_eq(ranks_threads(size, run_many, &all), 0);
    }
}

/* ---- a rank that does not wait ------------------------------------------- */

/* Rank 0 starts a collective and then does not look at it until the others are
 * through. */
static int run_late(const comm_oob_t *oob, void *argument)
{
    node_ranks_t *all = argument;
    node_work_t *works[20];
    node_rank_t *rank;
    node_arena_t *arena;
    float *data;
    err_t err = ERR_INIT;

    if (node_rank_open(all, oob, &rank))
        return 1;
    RANKS_OK(
        node_arena_open(rank->node, 20 * 5000 * sizeof *data, &arena, &err),
        err);
    data = arena->data;
    for (uint64_t i = 0; i < 20; i++) {
        fill(rank, i, data + i * 5000, 5000);
        works[i] = node_rank_start(rank, NODE_ZCOPY, data + i * 5000, 5000);
    }
    for (int i = 1; oob->rank == 0 && i < oob->size; i++)
        RANKS_CHECK(sem_wait(&all->go) == 0);
    if (oob->rank == 0) { /* done, although this rank did not look */
        double since;

        RANKS_CHECK(node_oldest(rank->node, &since) == UINT64_MAX);
    }
    for (uint64_t i = 0; i < 20; i++)
        if (wait_well(rank, works[i]) ||
            check_sum(rank, i, data + i * 5000, 5000))
            return 1;
    if (oob->rank > 0)
        sem_post(&all->go);
    node_arena_close(rank->node, arena);
    node_rank_close(rank);
    return 0;
}

Test(node, a_late_rank_delays_nobody)
{
    node_ranks_t all;

    node_ranks_init(&all, NULL);
    cr_assert_eq(ranks_threads(3, run_late, &all), 0);
}

/* Rank 0 starts a collective and then acts as its own comm thread: until the
 * other ranks have their result it sleeps on its pipe and copies in place of
 * the owner. */
static int run_absent(const comm_oob_t *oob, void *argument)
{
    float *data = calloc(STAGED, sizeof *data);
    node_ranks_t *all = argument;
    int helped = 0, ended = 0, woken = 0;
    bool first = true;
    node_rank_t *rank;
    node_work_t *work;

    if (node_rank_open(all, oob, &rank))
        return 1;
    fill(rank, 1, data, STAGED);
    node_stage_present(rank->node, oob->rank > 0);
    if (oob->rank > 0) /* start when rank 0 is about to sleep */
        RANKS_CHECK(sem_wait(&all->asleep) == 0);
    work = node_rank_start(rank, NODE_STAGED, data, STAGED);
    while (oob->rank == 0 && ended < oob->size - 1) {
        struct pollfd wake = {.fd = rank->wake_fd, .events = POLLIN};

        node_wakeup_asleep(rank->node, true);
        for (int i = 1; first && i < oob->size; i++)
            sem_post(&all->asleep);
        /* The first time it sleeps until it is woken: the other ranks cannot
         * finish without its copies. The limit only ends a broken test. */
        if (first || !node_stage_needs_help(rank->node))
            woken += poll(&wake, 1, first ? 60000 : 200) == 1;
        first = false;
        node_wakeup_asleep(rank->node, false);
        if (wake.revents != 0)
            node_wakeup_clear(rank->node);
        helped += node_stage_help(rank->node);
        ended += sem_trywait(&all->go) == 0;
    }
    RANKS_CHECK(oob->rank > 0 || (helped > 3 && woken > 0));
    if (wait_well(rank, work) || check_sum(rank, 1, data, STAGED))
        return 1;
    if (oob->rank > 0)
        sem_post(&all->go);
    node_rank_close(rank);
    free(data);
    return 0;
}

Test(node, an_absent_owner_is_replaced_by_its_comm_thread)
{
    node_ranks_t all;

    for (int size = 2; size <= 4; size++) {
        node_ranks_init(&all, NULL);
        cr_assert_eq(ranks_threads(size, run_absent, &all), 0, "%d", size);
    }
}

/* ---- failures ------------------------------------------------------------ */

typedef struct failing {
    node_ranks_t all;
    node_way_t way;
    int sleeps; /* number of sleeps before the group failed */
} failing_t;

/* Rank 1 never starts, and declares that the group has failed when the other
 * ranks wait and have slept. */
static int run_dead(const comm_oob_t *oob, void *argument)
{
    failing_t *what = argument;
    float *plain = calloc(5000, sizeof *plain), *data;
    node_rank_t *rank;
    node_arena_t *arena;
    node_work_t *work;
    double begin, since;
    err_t err = ERR_INIT;

    if (node_rank_open(&what->all, oob, &rank))
        return 1;
    RANKS_OK(node_arena_open(rank->node, 5000 * sizeof *data, &arena, &err),
             err);
    data = what->way == NODE_ZCOPY ? arena->data : plain;
    if (oob->rank == 1) {
        for (int i = 1; i < oob->size; i++)
            RANKS_CHECK(sem_wait(&what->all.slept) == 0);
        atomic_store(&what->all.failed, true);
        what->sleeps = atomic_load(&what->all.sleeps);
    } else {
        work = node_rank_start(rank, what->way, data,
                               what->way == NODE_ONESHOT ? 10 : 5000);
        begin = clock_now();
        RANKS_CHECK(node_oldest(rank->node, &since) == work->number);
        RANKS_CHECK(since >= begin);
        RANKS_CHECK(node_poll(rank->node, work) == COMM_PENDING);
        RANKS_CHECK(!node_wait(rank->node, work));
        RANKS_CHECK(node_oldest(rank->node, &since) == UINT64_MAX);
    }
    node_arena_close(rank->node, arena);
    node_rank_close(rank);
    free(plain);
    return 0;
}

Test(node, a_wait_ends_when_the_group_has_failed)
{
    for (node_way_t way = NODE_ZCOPY; way <= NODE_STAGED; way++) {
        failing_t what = {.way = way};

        node_ranks_init(&what.all, NULL);
        cr_assert_eq(ranks_threads(3, run_dead, &what), 0, "way %d", (int)way);
        /* a rank that was about to sleep may do so once more */
        cr_assert_leq(atomic_load(&what.all.sleeps), what.sleeps + 2);
    }
}

/* Rank 1 starts the collective with one element less. */
static int run_differ(const comm_oob_t *oob, void *argument)
{
    failing_t *what = argument;
    size_t count = what->way == NODE_ONESHOT ? 10 : 5000;
    float *plain = calloc(count, sizeof *plain);
    node_rank_t *rank;
    node_arena_t *arena;
    node_work_t *work;
    err_t err = ERR_INIT;

    if (node_rank_open(&what->all, oob, &rank))
        return 1;
    RANKS_OK(node_arena_open(rank->node, 5000 * sizeof *plain, &arena, &err),
             err);
    work = node_rank_start(rank, what->way,
                           what->way == NODE_ZCOPY ? arena->data : plain,
                           oob->rank == 1 ? count - 1 : count);
    RANKS_CHECK(!node_wait(rank->node, work));
    RANKS_CHECK(what->all.fault.code == ERR_CONFIG);
    RANKS_CHECK(strstr(what->all.fault.text, "rank") != NULL &&
                strstr(what->all.fault.text, "on host called") != NULL);
    node_arena_close(rank->node, arena);
    node_rank_close(rank);
    free(plain);
    return 0;
}

Test(node, different_calls_are_found)
{
    for (node_way_t way = NODE_ZCOPY; way <= NODE_STAGED; way++) {
        failing_t what = {.way = way};

        node_ranks_init(&what.all, NULL);
        cr_assert_eq(ranks_threads(3, run_differ, &what), 0, "way %d",
                     (int)way);
    }
}

/* ---- several nodes ------------------------------------------------------- */

/* This rank owns slice [local] of a zero-copy work: sum the slice over the
 * node, as if there were no other node. */
static void slice_reduce(node_rank_t *rank, const node_work_t *work)
{
    size_t slice = work->split.slice / sizeof(float), count;
    size_t begin = (size_t)rank->place.local * slice;
    char *buffers[NODE_RANKS_MAX];

    if (rank->place.local >= work->split.owners)
        return;
    count = work->request->count - begin;
    if (rank->place.local + 1 < work->split.owners && slice < count)
        count = slice;
    while (!node_zcopy_arrived(rank->node, work->number))
        sched_yield();
    node_zcopy_buffers(rank->node, work->number, buffers);
    for (int i = 0; i < rank->place.count; i++)
        buffers[i] += begin * sizeof(float);
    node_sum(buffers, rank->place.count, count, COMM_FLOAT32, COMM_SUM);
    node_zcopy_lane_done(rank->node, work->number);
}

/* This rank owns one in [owners] segments of a staged work: sum these over the
 * node. */
static void segments_reduce(node_rank_t *rank, const node_work_t *work)
{
    uint64_t segments = node_stage_segments(work);
    size_t all = work->request->count * sizeof(float);
    char *buffers[NODE_RANKS_MAX];

    for (uint64_t i = (uint64_t)rank->place.local; i < segments;
         i += (uint64_t)work->split.owners) {
        size_t left = all - i * work->segment_bytes;
        uint64_t segment = work->segment + i;

        while (!node_stage_arrived(rank->node, segment))
            node_stage_progress(rank->node);
        for (int j = 0; j < rank->place.count; j++)
            buffers[j] = node_stage_place(rank->node, j, segment);
        if (left > work->segment_bytes)
            left = work->segment_bytes;
        node_sum_into(buffers, rank->place.count, left / sizeof(float),
                      COMM_FLOAT32, COMM_SUM, buffers[0]);
        node_stage_done(rank->node, segment);
    }
}

static float node_sum_of(const node_rank_t *rank, uint64_t which, size_t i)
{
    const int *ranks = rank->place.order + rank->place.first[rank->place.here];
    float sum = node_rank_value(ranks[0], which, i);

    for (int j = 1; j < rank->place.count; j++)
        sum += node_rank_value(ranks[j], which, i);
    return sum;
}

static int run_nodes(const comm_oob_t *oob, void *argument)
{
    node_rank_t *rank;
    node_arena_t *arena;
    float *plain = calloc(2000, sizeof *plain), *data;
    err_t err = ERR_INIT;

    if (node_rank_open(argument, oob, &rank))
        return 1;
    RANKS_OK(node_arena_open(rank->node, 2000 * sizeof *data, &arena, &err),
             err);
    data = arena->data;
    for (uint64_t i = 0; i < 300; i++) {
        node_work_t *works[2];

        fill(rank, i, data, 2000);
        fill(rank, i + 1, plain, 2000);
        works[0] = node_rank_start(rank, NODE_ZCOPY, data, 2000);
        works[1] = node_rank_start(rank, NODE_STAGED, plain, 2000);
        slice_reduce(rank, works[0]);
        if (rank->place.local < works[1]->split.owners)
            segments_reduce(rank, works[1]);
        if (wait_well(rank, works[0]) || wait_well(rank, works[1]))
            return 1;
        for (size_t j = 0; j < 2000; j++) {
            RANKS_CHECK(data[j] == node_sum_of(rank, i, j));
            RANKS_CHECK(plain[j] == node_sum_of(rank, i + 1, j));
        }
    }
    node_arena_close(rank->node, arena);
    node_rank_close(rank);
    free(plain);
    return 0;
}

Test(node, owners_reduce_what_their_node_has_posted)
{
    node_ranks_t all;

    node_ranks_init(&all, "aabb");
    cr_assert_eq(ranks_threads(4, run_nodes, &all), 0);
    node_ranks_init(&all, "abaab");
    cr_assert_eq(ranks_threads(5, run_nodes, &all), 0);
}
