/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Collectives on the memory of the test device, in both of its orders: they
 * have the bits of the same collectives on the host, and begin behind the event
 * that they are given.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/collectives.h"
#include "comm/comm_ops.h"
#include "comm/far_ranks.h"
#include "comm/waits.h"
#include "dev/dev_far.h"
#include "lib/ranks.h"

/* Elements of the largest collective: several slots of float64. */
#define MOST ((size_t)700003)

static const size_t sizes[] = {1, 17, 1000, 100003, MOST};

typedef struct rig {
    far_rank_t far;
    char *host, *back;   /* [bytes] */
    comm_arena_t *arena; /* [bytes] on the device */
    size_t bytes;
} rig_t;

static int rig_open(rig_t *rig, const far_plan_t *plan, const comm_oob_t *oob)
{
    err_t err = ERR_INIT;

    rig->bytes = 4 * MOST * sizeof(double);
    RANKS_OK(far_rank_open(&rig->far, plan, oob, &err), err);
    RANKS_OK(far_rank_join(&rig->far, plan, &err), err);
    RANKS_CHECK(comm_group_dev(rig->far.group) == rig->far.dev);
    RANKS_CHECK(comm_group_dev(rig->far.control) == NULL);
    RANKS_CHECK(strcmp(comm_group_backend(rig->far.group), plan->backend) == 0);
    RANKS_OK(comm_arena_open(rig->far.group, rig->bytes, &rig->arena, &err),
             err);
    rig->host = malloc(rig->bytes);
    rig->back = malloc(rig->bytes);
    return 0;
}

static void rig_close(rig_t *rig)
{
    free(rig->host);
    free(rig->back);
    comm_arena_close(rig->arena);
    far_rank_close(&rig->far);
}

/* ---- the bits of the host ------------------------------------------------ */

/* A collective, with its data at [data] and after it [inputs]: what it reads
 * beside its data. */
typedef struct call {
    comm_kind_t kind;
    size_t count;
    comm_type_t type;
    comm_op_t op;
    int root;
    size_t cuts[RANKS_MAX + 1];
    comm_leaves_t mine;
    size_t bytes;  /* of the data */
    size_t inputs; /* bytes of the inputs */
} call_t;

static err_code_t call_make(const call_t *call, comm_group_t *group, char *data,
                            err_t *err)
{
    const size_t width = comm_type_bytes(call->type);
    char *inputs = data + mem_round(call->bytes);
    void *views[COMM_VIEWS_MAX];

    switch (call->kind) {
    case COMM_ALLREDUCE:
        return comm_allreduce(group, data, call->count, call->type, call->op,
                              err);
    case COMM_TREE:
        for (int i = 0; i < comm_tree_views(call->mine.first, call->mine.held,
                                            call->mine.leaves);
             i++)
            views[i] = inputs + (size_t)i * call->count * width;
        return comm_allreduce_tree(group, views, &call->mine, data, call->count,
                                   call->type, err);
    case COMM_BROADCAST:
        return comm_broadcast(group, data, call->count, call->root, err);
    case COMM_ALLGATHER:
        return comm_allgather(group, inputs, call->count, data, err);
    case COMM_REDUCE_SCATTER:
        return comm_reduce_scatter(group, data, call->cuts, call->type,
                                   call->op, err);
    case COMM_GATHER_RANGES:
        return comm_allgather_ranges(group, data, call->cuts, call->type, err);
    case COMM_BARRIER:
        break;
    }
    return comm_barrier(group, err);
}

/* After a reduce-scatter only this rank's range is defined. */
static bool call_same(const call_t *call, const rig_t *rig)
{
    const size_t width = comm_type_bytes(call->type);
    const size_t *own = call->cuts + rig->far.rank;

    if (call->kind != COMM_REDUCE_SCATTER)
        return memcmp(rig->host, rig->back, call->bytes) == 0;
    return memcmp(rig->host + own[0] * width, rig->back + own[0] * width,
                  (own[1] - own[0]) * width) == 0;
}

/* The call on the host, and on the device. */
static int call_check(const call_t *call, rig_t *rig)
{
    const size_t bytes = mem_round(call->bytes) + call->inputs;
    const comm_type_t type = call->type;
    char *device = comm_arena_data(rig->arena);
    err_t err = ERR_INIT;

    RANKS_CHECK(bytes <= rig->bytes);
    collectives_fill(rig->host, bytes / comm_type_bytes(type), type,
                     rig->far.rank);
    RANKS_OK(far_rank_put(&rig->far, device, rig->host, bytes, true, &err),
             err);
    RANKS_OK(call_make(call, rig->far.group, device, &err), err);
    RANKS_OK(call_make(call, rig->far.control, rig->host, &err), err);
    RANKS_OK(far_rank_get(&rig->far, rig->back, device, call->bytes, &err),
             err);
    RANKS_CHECK(call_same(call, rig));
    return 0;
}

/* Uneven ranges, one of which is empty if there are three ranks or more. */
static void ranges_set(call_t *call, int size)
{
    const size_t ranks = (size_t)size;

    for (size_t r = 0; r <= ranks; r++)
        call->cuts[r] = r == 2 && ranks > 2
                            ? call->cuts[1]
                            : call->count / (ranks * ranks) * r * r;
    call->cuts[ranks] = call->count;
}

static int ranges_check(rig_t *rig, call_t call)
{
    call.bytes = call.count * comm_type_bytes(call.type);
    ranges_set(&call, rig->far.size);
    call.kind = COMM_REDUCE_SCATTER;
    if (call_check(&call, rig))
        return 1;
    call.kind = COMM_GATHER_RANGES;
    return call_check(&call, rig);
}

static int sums_check(rig_t *rig)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int type = 0; type < COMM_TYPES; type++) {
            call_t call = {.kind = COMM_ALLREDUCE,
                           .count = sizes[s],
                           .type = (comm_type_t)type,
                           .op = (comm_op_t)((s + (size_t)type) % COMM_OPS)};

            if (sizes[s] == MOST && type > COMM_FLOAT64)
                continue;
            call.bytes = call.count * comm_type_bytes(call.type);
            if (call_check(&call, rig) || ranges_check(rig, call))
                return 1;
        }
    return 0;
}

static int copies_check(rig_t *rig)
{
    const int size = rig->far.size;

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        call_t call = {.kind = COMM_BROADCAST,
                       .count = 4 * sizes[s],
                       .root = (int)s % size,
                       .bytes = 4 * sizes[s]};

        if (call_check(&call, rig))
            return 1;
        call.kind = COMM_ALLGATHER;
        call.inputs = call.count;
        call.bytes = call.count * (size_t)size;
        if (call_check(&call, rig))
            return 1;
    }
    return call_check(&(call_t){.kind = COMM_BARRIER}, rig);
}

/* Uneven shares of leaves: the last rank has most, others may have none. */
static int trees_check(rig_t *rig)
{
    static const int64_t leaves[] = {1, 2, 7, 16, 21};
    const int rank = rig->far.rank, size = rig->far.size;

    for (size_t i = 0; i < 2 * (sizeof leaves / sizeof *leaves); i++) {
        const int64_t all = leaves[i / 2];
        const int64_t first = all * rank * rank / (size * size);
        const int64_t end = all * (rank + 1) * (rank + 1) / (size * size);
        call_t call = {.kind = COMM_TREE,
                       .count = i % 2 == 0 ? 1003 : 70001,
                       .type = i % 3 == 0 ? COMM_FLOAT64 : COMM_FLOAT32,
                       .mine = {first, end - first, all, NULL}};

        call.bytes = call.count * comm_type_bytes(call.type);
        call.inputs =
            (size_t)comm_tree_views(first, end - first, all) * call.bytes;
        if (call_check(&call, rig))
            return 1;
    }
    return 0;
}

static int same_main(const comm_oob_t *oob, void *argument)
{
    rig_t rig;
    int failed;

    if (rig_open(&rig, argument, oob))
        return 1;
    failed = sums_check(&rig) || copies_check(&rig) || trees_check(&rig);
    rig_close(&rig);
    return failed;
}

Test(comm_staged, collectives_have_the_bits_of_the_host, .timeout = 300)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (int n = 1; n <= 4; n++) {
            far_plan_t plan = {n == 1 ? "self" : "threads", order, 60};

            cr_assert_eq(ranks_threads(n, same_main, &plan), 0,
                         "order %d, %d ranks", order, n);
        }
}

Test(comm_staged, so_they_have_over_ucx, .timeout = 300)
{
    far_plan_t plan = {"ucx", DEV_FAR_LAST_FIRST, 60};
    int results[3];

    ranks_transports();
    cr_assert_eq(ranks_forks(3, 200, same_main, &plan, results), 0);
}

/* ---- events -------------------------------------------------------------- */

#define FLIGHTS 7

static const size_t counts[FLIGHTS] = {5, 70000, 1, MOST / 2, 33, 200001, 100};

typedef struct flights {
    far_plan_t plan;
    bool after;   /* collectives begin behind the copies of their data */
    bool wait_on; /* the stream waits for them before data is read */
    atomic_int wrong;
} flights_t;

/* Start several works, whose data the device writes late. */
static int flights_start(rig_t *rig, bool after, dev_event_t **events,
                         comm_work_t **works)
{
    double *host = (double *)rig->host;
    double *device = comm_arena_data(rig->arena);
    err_t err = ERR_INIT;

    for (int i = 0; i < FLIGHTS; i++) {
        const size_t count = counts[i];

        collectives_fill(host, count, COMM_FLOAT64, rig->far.rank);
        RANKS_OK(dev_event_open(rig->far.dev, &events[i], &err), err);
        RANKS_OK(dev_copy(rig->far.stream, device, host, count * sizeof *host,
                          DEV_HOST_TO_DEV, &err),
                 err);
        RANKS_OK(dev_event_record(events[i], rig->far.stream, &err), err);
        if (after)
            comm_group_after(rig->far.group, events[i]);
        RANKS_CHECK(comm_allreduce_start(rig->far.group, device, count,
                                         COMM_FLOAT64, COMM_SUM, &works[i],
                                         &err) == COMM_PENDING);
        host += count;
        device += count;
    }
    return 0;
}

/* Number of works that have other bits than on the host. */
static int flights_compare(rig_t *rig, int *wrong)
{
    const size_t width = sizeof(double);
    size_t at = 0;
    err_t err = ERR_INIT;

    for (int i = 0; i < FLIGHTS; i++) {
        RANKS_OK(comm_allreduce(rig->far.control, rig->host + at, counts[i],
                                COMM_FLOAT64, COMM_SUM, &err),
                 err);
        *wrong +=
            memcmp(rig->host + at, rig->back + at, counts[i] * width) != 0;
        at += counts[i] * width;
    }
    return 0;
}

/* If the data is read before anybody waits, rank 0 starts its works after the
 * other ranks have read: so what they read cannot be the sum. */
static int flights_main(const comm_oob_t *oob, void *argument)
{
    flights_t *flights = argument;
    const bool late = !flights->wait_on && oob->rank == 0;
    comm_work_t *works[FLIGHTS];
    dev_event_t *events[FLIGHTS];
    int wrong = 0;
    rig_t rig;
    err_t err = ERR_INIT;

    if (rig_open(&rig, &flights->plan, oob))
        return 1;
    if (late)
        RANKS_OK(comm_barrier(rig.far.control, &err), err);
    if (flights_start(&rig, flights->after, events, works))
        return 1;
    for (int i = FLIGHTS - 1; flights->wait_on && i >= 0; i--)
        RANKS_OK(comm_work_wait_on(works[i], rig.far.stream, &err), err);
    RANKS_OK(far_rank_get(&rig.far, rig.back, comm_arena_data(rig.arena),
                          rig.bytes, &err),
             err);
    if (!late && !flights->wait_on)
        RANKS_OK(comm_barrier(rig.far.control, &err), err);
    for (int i = 0; !flights->wait_on && i < FLIGHTS; i++)
        RANKS_OK(comm_work_wait(works[i], &err), err);
    for (int i = 0; i < FLIGHTS; i++)
        dev_event_close(events[i]);
    if (flights_compare(&rig, &wrong))
        return 1;
    atomic_fetch_add(&flights->wrong, wrong);
    rig_close(&rig);
    return 0;
}

static int flights_wrong(int order, bool after, bool wait_on)
{
    flights_t flights = {
        .plan = {"threads", order, 60}, .after = after, .wait_on = wait_on};

    cr_assert_eq(ranks_threads(3, flights_main, &flights), 0);
    return atomic_load(&flights.wrong);
}

Test(comm_staged, works_in_flight_follow_their_events, .timeout = 120)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        cr_expect_eq(flights_wrong(order, true, true), 0, "order %d", order);
}

Test(comm_staged, a_missing_event_shows, .timeout = 120)
{
    cr_expect_gt(flights_wrong(DEV_FAR_NEEDED_ONLY, false, true), 0);
    cr_expect_gt(flights_wrong(DEV_FAR_NEEDED_ONLY, true, false), 0);
    cr_expect_gt(flights_wrong(DEV_FAR_LAST_FIRST, true, false), 0);
}

/* A caller that only polls sees the end of its work, too. */
static int poll_main(const comm_oob_t *oob, void *argument)
{
    comm_work_t *work = NULL;
    rig_t rig;
    err_t err = ERR_INIT;

    if (rig_open(&rig, argument, oob))
        return 1;
    collectives_fill(rig.host, MOST, COMM_FLOAT64, oob->rank);
    RANKS_OK(far_rank_put(&rig.far, comm_arena_data(rig.arena), rig.host,
                          MOST * sizeof(double), true, &err),
             err);
    RANKS_CHECK(comm_allreduce_start(rig.far.group, comm_arena_data(rig.arena),
                                     MOST, COMM_FLOAT64, COMM_SUM, &work,
                                     &err) == COMM_PENDING);
    RANKS_CHECK(waits_poll(work) == COMM_DONE);
    RANKS_OK(comm_work_wait(work, &err), err);
    RANKS_OK(far_rank_get(&rig.far, rig.back, comm_arena_data(rig.arena),
                          MOST * sizeof(double), &err),
             err);
    RANKS_CHECK(collectives_check(rig.back, MOST, COMM_FLOAT64, COMM_SUM,
                                  oob->size) == 0);
    rig_close(&rig);
    return 0;
}

Test(comm_staged, polling_sees_the_end, .timeout = 120)
{
    far_plan_t plan = {"threads", DEV_FAR_NEEDED_ONLY, 60};

    cr_assert_eq(ranks_threads(3, poll_main, &plan), 0);
}
