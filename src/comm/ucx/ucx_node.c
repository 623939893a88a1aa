/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_node.h"

#include "base/mem.h"
#include "comm/comm_vote.h"
#include "comm/ucx/ucx_thread.h"

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
    return ucx_thread_watch(context, fd, err);
}

/* ---- open and close ------------------------------------------------------ */

err_code_t ucx_node_new(ucx_group_t *group, err_t *err)
{
    node_config_t config = {
        .rank = group->base.rank,
        .size = group->base.size,
        .hellos = group->base.hellos,
        .place = group->local.place,
        .own_core = group->local.core,
        /* One message between nodes carries a segment. */
        .segment_most = group->local.place.nodes > 1 ? COMM_CHUNK_BYTES : 0,
        .failed = &group->failed,
        .context = group,
        .exchange = node_exchange,
        .fail = node_fail,
        .sleeps = node_sleeps,
        .watch = node_watch,
    };
    err_code_t rc = mem_new(char *, (size_t)group->local.place.count,
                            "comm parts", &group->parts, err);

    group->planned = (comm_place_t){
        .ranks = group->base.size,
        .nodes = group->local.place.nodes,
        .least = group->local.place.least,
        .scratch = ucx_task_scratch(group->base.size),
    };
    return rc == ERR_OK ? node_new(&config, &group->node, err) : rc;
}

err_code_t ucx_node_open(ucx_group_t *group, err_t *err)
{
    err_code_t rc = node_open(group->node, err);

    group->planned.shared = node_is_open(group->node);
    group->planned.oneshot = node_oneshot_most(group->node);
    group->planned.staged = node_stage_most(group->node);
    group->last.count = 0; /* that was planned without the node stage */
    ucx_group_wake(group); /* so that it tells the node stage when it sleeps */
    return rc;
}

void ucx_node_close(ucx_group_t *group)
{
    node_close(group->node);
    mem_free(group->parts);
}

/* ---- works --------------------------------------------------------------- */

comm_plan_t ucx_node_plan(const ucx_group_t *group,
                          const comm_request_t *request)
{
    bool reduces = request->kind == COMM_ALLREDUCE ||
                   request->kind == COMM_REDUCE_SCATTER ||
                   request->kind == COMM_GATHER_RANGES;
    bool arena = reduces && node_arena_holds(group->node, request->data,
                                             comm_request_bytes(request));

    return comm_plan(&group->planned, group->base.table, request, arena);
}

void ucx_node_choose(ucx_group_t *group, ucx_work_t *work)
{
    const comm_request_t *request = &work->request;
    ucx_last_plan_t *last = &group->last;
    bool arena;

    if (request->kind != COMM_ALLREDUCE) {
        work->plan = ucx_node_plan(group, request);
        return;
    }
    arena = node_arena_holds(group->node, request->data,
                             comm_request_bytes(request));
    if (request->count != last->count || request->type != last->type ||
        arena != last->arena)
        *last = (ucx_last_plan_t){
            .count = request->count,
            .type = request->type,
            .arena = arena,
            .plan =
                comm_plan(&group->planned, group->base.table, request, arena)};
    work->plan = last->plan;
}

bool ucx_node_start(ucx_group_t *group, ucx_work_t *work)
{
    static const node_way_t ways[] = {[COMM_WAY_ONESHOT] = NODE_ONESHOT,
                                      [COMM_WAY_ZCOPY] = NODE_ZCOPY,
                                      [COMM_WAY_STAGED] = NODE_STAGED};
    const comm_plan_t *plan = &work->plan;
    size_t width = comm_type_bytes(work->request.type);

    work->node.number = work->number;
    work->node.request = &work->request;
    atomic_store_explicit(&work->node.way, (int)ways[plan->way],
                          memory_order_relaxed);
    if (group->local.place.nodes > 1)
        work->node.split = (node_split_t){.owners = plan->slices,
                                          .lanes = plan->slices * plan->lanes,
                                          .slice = plan->slice * width};
    node_start(group->node, &work->node);
    return group->local.place.local < plan->slices;
}

/* ---- arena --------------------------------------------------------------- */

typedef struct ucx_arena {
    comm_arena_t base;
    node_arena_t *shared; /* NULL: plain memory */
} ucx_arena_t;

/* Each rank first allocates what is its own. Then the ranks vote, so that
 * either all ranks open the shared memory, or none. */
err_code_t ucx_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                          err_t *err)
{
    node_t *node = ((ucx_group_t *)base)->node;
    const bool shared = node_arena_is_free(node);
    ucx_arena_t *arena = NULL;
    err_t mine = ERR_INIT;
    err_code_t rc = mem_new(ucx_arena_t, 1, "comm arena", &arena, &mine);

    if (rc == ERR_OK)
        arena->base.group = base;
    if (rc == ERR_OK && !shared)
        (void)mem_alloc(bytes, "comm arena", &arena->base.data, &mine);
    rc = comm_vote(base, &mine, err);
    if (rc == ERR_OK && shared)
        rc = node_arena_open(node, bytes, &arena->shared, err);
    if (rc != ERR_OK) {
        if (arena != NULL)
            mem_free(arena->base.data);
        mem_free(arena);
        return rc;
    }
    if (shared)
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
