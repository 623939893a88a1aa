/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The plan of the last all-reduce (src/comm/ucx/ucx_node.c) is used again for
 * an all-reduce to which it belongs, and for no other one. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collectives.h"
#include "comm/ucx/ucx_group.h"
#include "comm/ucx/ucx_node.h"
#include "lib/ranks.h"

TestSuite(ucx_node, .init = ranks_transports, .timeout = 120);

#define MOST 300000 /* elements */

typedef struct ask {
    size_t count;
    comm_type_t type;
    bool arena;
    const char *name; /* of its plan, for two ranks on one node */
} ask_t;

/* For each member there are two asks that differ in that member only, and whose
 * plans differ. */
static const ask_t asks[] = {
    {1024, COMM_FLOAT32, false, "shot"},   {1025, COMM_FLOAT32, false, "stage"},
    {1025, COMM_FLOAT32, true, "node"},    {1025, COMM_FLOAT16, false, "shot"},
    {1025, COMM_FLOAT16, true, "shot"},    {1024, COMM_FLOAT64, false, "stage"},
    {1024, COMM_FLOAT64, true, "node"},    {1, COMM_INT64, true, "shot"},
    {MOST, COMM_BFLOAT16, false, "stage"}, {MOST, COMM_INT32, false, "stage"},
    {MOST, COMM_BFLOAT16, true, "node"},   {MOST, COMM_INT32, true, "node"},
};
#define ASKS ((int)(sizeof asks / sizeof *asks))

/* One letter per rank; ranks of one letter are on one node. */
static char one_node[] = "aa", two_nodes[] = "aabb", uneven[] = "aabbb";

typedef struct fixture {
    const char *nodes; /* one of the above */
    comm_group_t *group;
    comm_arena_t *arena;
    void *plain;
} fixture_t;

static int fixture_open(const comm_oob_t *oob, const char *nodes,
                        fixture_t *out)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_oob_t apart = *oob;
    char host[2] = {nodes[oob->rank]};
    err_t err = ERR_INIT;

    out->nodes = nodes;
    apart.host = host;
    RANKS_OK(comm_group_open(&config, &apart, &out->group, &err), err);
    RANKS_OK(
        comm_arena_open(out->group, MOST * sizeof(double), &out->arena, &err),
        err);
    out->plain = calloc(MOST, sizeof(double));
    return 0;
}

static void fixture_close(fixture_t *fixture)
{
    free(fixture->plain);
    comm_arena_close(fixture->arena);
    comm_group_close(fixture->group);
}

static comm_request_t request_of(const fixture_t *fixture, const ask_t *ask)
{
    return (comm_request_t){.kind = COMM_ALLREDUCE,
                            .data = ask->arena ? comm_arena_data(fixture->arena)
                                               : fixture->plain,
                            .count = ask->count,
                            .type = ask->type};
}

/* Is [plan] the one that is decided anew for [ask]? */
static int plan_check(const fixture_t *fixture, const ask_t *ask,
                      const comm_plan_t *plan)
{
    comm_request_t request = request_of(fixture, ask);
    comm_plan_t fresh = ucx_node_plan((ucx_group_t *)fixture->group, &request);

    RANKS_CHECK(plan->way == fresh.way);
    RANKS_CHECK(plan->algorithm == fresh.algorithm);
    RANKS_CHECK(plan->lanes == fresh.lanes);
    RANKS_CHECK(plan->slices == fresh.slices);
    RANKS_CHECK(plan->slice == fresh.slice);
    RANKS_CHECK(plan->segment == fresh.segment);
    if (fixture->nodes == one_node)
        RANKS_CHECK(strcmp(comm_plan_name(plan), ask->name) == 0);
    return 0;
}

/* ---- plans --------------------------------------------------------------- */

static int choose_check(const fixture_t *fixture, const ask_t *ask)
{
    ucx_work_t work = {.request = request_of(fixture, ask)};

    ucx_node_choose((ucx_group_t *)fixture->group, &work);
    return plan_check(fixture, ask, &work.plan);
}

/* After each ask each other one. Nothing is started. */
static int run_pairs(const comm_oob_t *oob, void *argument)
{
    fixture_t fixture;
    err_t err = ERR_INIT;

    if (fixture_open(oob, argument, &fixture))
        return 1;
    for (int i = 0; i < ASKS; i++)
        for (int j = 0; j < ASKS; j++)
            if (choose_check(&fixture, &asks[i]) ||
                choose_check(&fixture, &asks[j]))
                return 1;
    RANKS_OK(comm_barrier(fixture.group, &err), err);
    fixture_close(&fixture);
    return 0;
}

Test(ucx_node, a_plan_is_used_again_only_where_it_belongs)
{
    cr_assert_eq(ranks_threads(2, run_pairs, one_node), 0);
    cr_assert_eq(ranks_threads(4, run_pairs, two_nodes), 0);
    cr_assert_eq(ranks_threads(5, run_pairs, uneven), 0);
}

/* ---- results ------------------------------------------------------------- */

static int sum_check(const fixture_t *fixture, const ask_t *ask, comm_op_t op)
{
    comm_request_t request = request_of(fixture, ask);
    comm_group_t *group = fixture->group;
    comm_work_t *work;
    err_t err = ERR_INIT;

    collectives_fill(request.data, ask->count, ask->type,
                     comm_group_rank(group));
    RANKS_CHECK(comm_allreduce_start(group, request.data, ask->count, ask->type,
                                     op, &work, &err) == COMM_PENDING);
    if (plan_check(fixture, ask, &((ucx_work_t *)work)->plan))
        return 1;
    RANKS_OK(comm_work_wait(work, &err), err);
    return collectives_check(request.data, ask->count, ask->type, op,
                             comm_group_size(group));
}

/* Each ask twice in a row with different operations, between others, in an
 * order that changes from round to round; broadcasts and barriers in between,
 * which have plans of their own. */
static int run_results(const comm_oob_t *oob, void *argument)
{
    static const int strides[] = {1, 5, 7, 11};
    fixture_t fixture;
    err_t err = ERR_INIT;
    char byte = 0;

    if (fixture_open(oob, argument, &fixture))
        return 1;
    for (int i = 0; i < 4 * ASKS; i++) {
        const ask_t *ask = &asks[i * strides[i / ASKS] % ASKS];

        if (sum_check(&fixture, ask, (comm_op_t)(i % COMM_OPS)))
            return 1;
        if (i % 3 == 0)
            RANKS_OK(comm_broadcast(fixture.group, &byte, 1, 0, &err), err);
        if (i % 5 == 0)
            RANKS_OK(comm_barrier(fixture.group, &err), err);
        if (sum_check(&fixture, ask, (comm_op_t)((i + 1) % COMM_OPS)))
            return 1;
    }
    fixture_close(&fixture);
    return 0;
}

Test(ucx_node, alternating_sums_are_right)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(2, run_results, one_node), 0);
    cr_assert_eq(ranks_forks(2, 60, run_results, one_node, results), 0);
    cr_assert_eq(ranks_forks(4, 60, run_results, two_nodes, results), 0);
}
