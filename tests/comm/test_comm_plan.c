/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How collectives are carried out: properties that hold for all plans, over a
 * grid of places, tables and requests; and some plans with their names. */
#include <criterion/criterion.h>
#include <string.h>

#include "comm/comm_plan.h"

static comm_table_t table;

static void setup(void)
{
    comm_table_default(&table);
}

TestSuite(comm_plan, .init = setup);

static comm_place_t place_of(int nodes, int least, bool shared)
{
    int ranks = nodes * least;
    size_t scratch = (size_t)ranks << 12;

    return (comm_place_t){.ranks = ranks,
                          .nodes = nodes,
                          .least = least,
                          .scratch = scratch > 262144 ? scratch : 262144,
                          .shared = shared,
                          .oneshot = least <= 16 ? 4096 : 65536 / (size_t)least,
                          .staged = shared ? 65536 : 0};
}

/* ---- what holds for all -------------------------------------------------- */

static void over_nodes_check(const comm_place_t *place, const comm_plan_t *plan,
                             const comm_request_t *request)
{
    size_t message = plan->segment * comm_type_bytes(request->type);

    cr_assert_eq(request->kind, COMM_ALLREDUCE);
    cr_assert_not(comm_type_rounds(request->type));
    cr_assert(plan->slices >= 1 && plan->slices <= place->least);
    cr_assert_geq(plan->slice * (size_t)plan->slices, request->count);
    if (plan->algorithm == COMM_BY_RING)
        message = message / (size_t)place->nodes + 8;
    cr_assert_leq(message, place->scratch);
}

static void messages_check(const comm_place_t *place, const comm_plan_t *plan,
                           const comm_request_t *request)
{
    size_t bytes = comm_request_bytes(request);

    if (request->kind == COMM_ALLREDUCE && plan->algorithm == COMM_BY_DOUBLING)
        cr_assert(bytes <= place->scratch && plan->lanes == 1);
    if (request->kind == COMM_ALLGATHER && plan->algorithm == COMM_BY_BRUCK)
        cr_assert(request->count * (size_t)place->ranks <= place->scratch &&
                  plan->lanes == 1);
}

static void check_plan(const comm_place_t *place, const comm_request_t *request,
                       bool arena)
{
    comm_plan_t plan = comm_plan(place, &table, request, arena);

    if (plan.way == COMM_WAY_NET) {
        cr_assert(plan.lanes >= 1 && plan.lanes <= COMM_LANES);
        messages_check(place, &plan, request);
        return;
    }
    cr_assert(place->shared);
    cr_assert(plan.way != COMM_WAY_ZCOPY || arena);
    cr_assert(plan.way != COMM_WAY_STAGED || place->staged > 0);
    if (plan.way == COMM_WAY_ONESHOT)
        cr_assert(place->nodes == 1 &&
                  (request->kind == COMM_BARRIER ||
                   comm_request_bytes(request) <= place->oneshot));
    if (place->nodes > 1) {
        cr_assert(plan.lanes >= 1 && plan.lanes <= COMM_LANES);
        over_nodes_check(place, &plan, request);
    } else {
        cr_assert_eq(plan.slices, 0);
    }
}

static void check_place(const comm_place_t *place)
{
    for (int kind = COMM_ALLREDUCE; kind <= COMM_BARRIER; kind++)
        for (int type = 0; type < COMM_TYPES; type++)
            for (size_t count = 1; count < (size_t)1 << 33;
                 count = count * 2 + count / 3 + 1) {
                comm_request_t request = {.kind = (comm_kind_t)kind,
                                          .type = (comm_type_t)type,
                                          .count = count};

                if (kind == COMM_BARRIER)
                    request.count = 0;
                check_plan(place, &request, false);
                check_plan(place, &request, true);
            }
}

static void check_places(void)
{
    for (int nodes = 1; nodes < 40; nodes += nodes < 9 ? 1 : 7)
        for (int least = 1; least < 130; least = least * 3 + 1)
            for (int shared = 0; nodes * least > 1 && shared < 2; shared++) {
                comm_place_t place = place_of(nodes, least, shared);

                check_place(&place);
            }
}

Test(comm_plan, grid)
{
    check_places();
}

Test(comm_plan, grid_with_other_tables)
{
    for (int by = 0; by < COMM_ALGORITHMS; by++) {
        comm_table_default(&table);
        comm_table_force(&table, (comm_algorithm_t)by);
        check_places();
    }
}

/* ---- by name ------------------------------------------------------------- */

static void named(int nodes, int least, bool shared, size_t count,
                  comm_type_t type, bool arena, const char *name)
{
    comm_place_t place = place_of(nodes, least, shared);
    comm_request_t request = {
        .kind = COMM_ALLREDUCE, .type = type, .count = count};
    comm_plan_t plan = comm_plan(&place, &table, &request, arena);

    cr_assert_str_eq(comm_plan_name(&plan), name,
                     "%d nodes of %d ranks, %zu elements: %s, not %s", nodes,
                     least, count, comm_plan_name(&plan), name);
}

Test(comm_plan, on_one_node)
{
    named(1, 2, true, 1024, COMM_FLOAT32, false, "shot");
    named(1, 2, true, 1024, COMM_FLOAT32, true, "shot");
    named(1, 2, true, 1025, COMM_FLOAT32, false, "stage");
    named(1, 2, true, 1025, COMM_FLOAT32, true, "node");
    named(1, 32, true, 513, COMM_FLOAT32, false, "stage");
    named(1, 4, false, 8192, COMM_FLOAT32, true, "doubling");
    named(1, 4, false, 1 << 20, COMM_FLOAT32, false, "ring");
    named(1, 4, false, 1 << 20, COMM_BFLOAT16, false, "direct");
}

Test(comm_plan, over_several_nodes)
{
    named(2, 2, true, 4096, COMM_FLOAT32, true, "node+doubling");
    named(2, 2, true, 1 << 20, COMM_FLOAT32, false, "stage+halving");
    named(3, 2, true, 1 << 20, COMM_FLOAT32, true, "node+ring");
    named(3, 2, true, 1 << 20, COMM_FLOAT16, true, "direct");
    named(3, 2, false, 1 << 20, COMM_FLOAT32, true, "ring");
    named(3, 2, false, 100, COMM_FLOAT32, false, "doubling");
}

/* The slices depend on nothing that differs between ranks, so all ranks decide
 * alike. */
Test(comm_plan, slices)
{
    comm_place_t place = place_of(3, 4, true);
    comm_request_t request = {
        .kind = COMM_ALLREDUCE, .type = COMM_FLOAT32, .count = 1 << 20};
    comm_plan_t plan = comm_plan(&place, &table, &request, true);

    cr_assert_eq(plan.slices, 4);
    cr_assert_eq(plan.slice, 1 << 18);
    cr_assert_eq(plan.lanes, 2);
    request.count = 1500; /* too few elements for more than one slice */
    plan = comm_plan(&place, &table, &request, false);
    cr_assert_eq(plan.slices, 1);
    cr_assert_eq(plan.lanes, 1);
}
