/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage as a part of a ucx group: see ucx_node.h. */
#include "comm/ucx_node.h"

#include "base/mem.h"
#include "comm/ucx_group.h"

/* ---- what the node stage calls ------------------------------------------- */

static err_code_t node_exchange(void *context, const void *mine, size_t bytes,
                                void *all, err_t *err)
{
    ucx_group_t *group = context;

    return comm_allgather(&group->base, mine, bytes, all, err);
}

static void node_fail(void *context, const err_t *fault)
{
    ucx_group_fail(context, fault);
}

static void node_sleeps(void *context, uint64_t number)
{
    ucx_group_t *group = context;

    ucx_group_sleeps(group, &group->works[number % COMM_WORKS_MAX]);
}

static err_code_t node_watch(void *context, int fd, err_t *err)
{
    return ucx_thread_watch_bell(context, fd, err);
}

/* ---- open and close ------------------------------------------------------ */

err_code_t ucx_node_new(ucx_group_t *group, err_t *err)
{
    node_config_t config = {
        .rank = group->base.rank,
        .size = group->base.size,
        .hellos = group->base.hellos,
        .place = group->place,
        .own_core = group->core,
        /* One message between nodes carries a segment. */
        .segment_most = group->place.nodes > 1 ? UCX_CHUNK_BYTES : 0,
        .failed = &group->failed,
        .context = group,
        .exchange = node_exchange,
        .fail = node_fail,
        .sleeps = node_sleeps,
        .watch = node_watch,
    };
    err_code_t rc = mem_new(char *, (size_t)group->place.count, "comm parts",
                            &group->span_parts, err);

    return rc == ERR_OK ? node_new(&config, &group->node, err) : rc;
}

err_code_t ucx_node_open(ucx_group_t *group, err_t *err)
{
    err_code_t rc = node_open(group->node, err);

    ucx_group_wake(group); /* if it sleeps, so that it says so on the board */
    return rc;
}

void ucx_node_close(ucx_group_t *group)
{
    node_close(group->node);
    mem_free(group->span_parts);
}

/* ---- which requests ------------------------------------------------------ */

static bool takes_shot(const ucx_group_t *group, const comm_request_t *request)
{
    if (group->place.nodes > 1)
        return false;
    return request->kind == COMM_BARRIER ||
           (request->kind == COMM_ALLREDUCE &&
            node_oneshot_fits(group->node, comm_request_bytes(request)) &&
            ucx_asked(group, request) == COMM_BY_SHOT);
}

/* Would the table have [request] go through the node stage if its data lay in
 * an arena? A sum that is rounded once cannot be made in two stages. */
static bool suits_slot(const ucx_group_t *group, const comm_request_t *request)
{
    comm_query_t query;

    if (request->kind != COMM_ALLREDUCE &&
        (group->place.nodes > 1 || (request->kind != COMM_REDUCE_SCATTER &&
                                    request->kind != COMM_GATHER_RANGES)))
        return false;
    query = ucx_query(group, request);
    query.where = COMM_WHERE_ARENA;
    if (group->place.nodes > 1 && query.half)
        return false;
    return comm_table_find(group->base.table, &query) == COMM_BY_NODE;
}

static bool takes_stage(const ucx_group_t *group, const comm_request_t *request)
{
    comm_algorithm_t asked;

    if (!node_can_stage(group->node) || request->kind != COMM_ALLREDUCE ||
        request->count == 0)
        return false;
    if (group->place.nodes > 1)
        return suits_slot(group, request);
    asked = ucx_asked(group, request); /* what is too much for one shot, too */
    return asked == COMM_BY_STAGE || asked == COMM_BY_SHOT;
}

bool ucx_node_way(const ucx_group_t *group, const comm_request_t *request,
                  node_way_t *way)
{
    const node_t *node = group->node;

    if (!node_is_open(node))
        return false;
    if (takes_shot(group, request)) {
        *way = NODE_ONESHOT;
        return true;
    }
    if (suits_slot(group, request) &&
        node_arena_holds(node, request->data, comm_request_bytes(request))) {
        *way = NODE_ZCOPY;
        return true;
    }
    *way = NODE_STAGED;
    return takes_stage(group, request);
}

/* ---- works --------------------------------------------------------------- */

bool ucx_node_start(ucx_group_t *group, ucx_work_t *work, node_way_t way)
{
    const comm_request_t *request = &work->request;
    bool owns = false;

    work->node.number = work->number;
    work->node.request = request;
    atomic_store_explicit(&work->node.way, (int)way, memory_order_relaxed);
    if (group->place.nodes > 1) {
        work->span = ucx_span_plan(&group->place, group->base.table,
                                   request->count, request->type);
        work->node.split = (node_split_t){
            .owners = work->span.slices,
            .lanes = work->span.slices * work->span.lanes,
            .slice = work->span.slice * comm_type_bytes(request->type)};
        owns = group->place.local < work->span.slices;
    }
    node_start(group->node, &work->node);
    return owns;
}

/* ---- arena --------------------------------------------------------------- */

typedef struct ucx_arena {
    comm_arena_t base;
    node_arena_t *shared; /* NULL: plain memory */
} ucx_arena_t;

err_code_t ucx_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                          err_t *err)
{
    node_t *node = ((ucx_group_t *)base)->node;
    ucx_arena_t *arena;
    err_code_t rc = mem_new(ucx_arena_t, 1, "comm arena", &arena, err);

    if (rc != ERR_OK)
        return rc;
    arena->base.group = base;
    if (node_arena_is_free(node))
        rc = node_arena_open(node, bytes, &arena->shared, err);
    else
        rc = mem_alloc(bytes, "comm arena", &arena->base.data, err);
    if (rc != ERR_OK) {
        mem_free(arena);
        return rc;
    }
    if (arena->shared != NULL)
        arena->base.data = arena->shared->data;
    *out = &arena->base;
    return ERR_OK;
}

void ucx_arena_close(comm_arena_t *base)
{
    ucx_arena_t *arena = (ucx_arena_t *)base;
    ucx_group_t *group = (ucx_group_t *)base->group;

    if (arena->shared != NULL)
        node_arena_close(group->node, arena->shared);
    else
        mem_free(base->data);
    mem_free(arena);
}
