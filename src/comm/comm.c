/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Closes groups, answers questions about them, and makes plain arenas. */
#include "comm/comm.h"

#include "base/mem.h"
#include "comm/comm_ops.h"

void comm_group_close(comm_group_t *group)
{
    const comm_table_t *table;
    comm_hello_t *hellos;

    if (group == NULL)
        return;
    hellos = group->hellos;
    table = group->table;
    group->ops->close(group);
    mem_free(hellos);
    mem_free((void *)(uintptr_t)table);
}

/* ---- questions ----------------------------------------------------------- */

int comm_group_rank(const comm_group_t *group)
{
    return group->rank;
}

int comm_group_size(const comm_group_t *group)
{
    return group->size;
}

int comm_rank_name(const comm_group_t *group, int rank)
{
    return (int)group->hellos[rank].name;
}

int comm_rank_find(const comm_group_t *group, int name)
{
    for (int rank = 0; rank < group->size; rank++)
        if (group->hellos[rank].name == name)
            return rank;
    return -1;
}

void comm_fault_left(const comm_group_t *group, err_t *fault)
{
    int name = comm_rank_name(group, group->rank);
    const char *host = group->hellos[group->rank].host;

    err_set_peer(fault, name, host,
                 "rank %d on %s left the group with collectives pending", name,
                 host);
}

void comm_fault_own(const comm_group_t *group, const err_t *reason,
                    err_t *fault)
{
    int name = comm_rank_name(group, group->rank);
    const char *host = group->hellos[group->rank].host;

    err_set_peer(fault, name, host, "rank %d on %s: %s", name, host,
                 reason->text);
}

dev_device_t *comm_group_dev(const comm_group_t *group)
{
    return group->dev;
}

double comm_group_timeout(const comm_group_t *group)
{
    return group->timeout;
}

const char *comm_group_backend(const comm_group_t *group)
{
    return group->hellos[group->rank].backend;
}

bool comm_group_enqueues(const comm_group_t *group)
{
    return group->ops->enqueues;
}

const char *comm_group_host(const comm_group_t *group, int rank)
{
    return rank >= 0 && rank < group->size ? group->hellos[rank].host
                                           : "unknown";
}

const char *comm_group_route(const comm_group_t *group)
{
    return group->ops->route == NULL ? NULL : group->ops->route(group);
}

void comm_group_report(comm_group_t *group, int64_t step, const char *phase)
{
    group->ops->report(group, step, phase);
}

err_code_t comm_group_check(comm_group_t *group, err_t *err)
{
    return group->ops->check(group, err);
}

err_code_t comm_group_look(comm_group_t *group, double waited, err_t *err)
{
    const double most = 2 * group->timeout;
    err_code_t rc;

    if (group->ops->look != NULL)
        return group->ops->look(group, waited, err);
    rc = comm_group_check(group, err);
    if (rc == ERR_OK && waited > most)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "its device has not ended its work for %.0f s (twice "
                     "fault.timeout)",
                     most);
    return rc;
}

void comm_group_fail(comm_group_t *group, const err_t *reason)
{
    err_t fault = ERR_INIT;

    if (group->ops->fail == NULL)
        return;
    comm_fault_own(group, reason, &fault);
    group->ops->fail(group, &fault);
}

err_code_t comm_group_result(comm_group_t *group, err_code_t rc,
                             const err_t *reason, err_t *err)
{
    if (rc == ERR_OK)
        return ERR_OK;
    comm_group_fail(group, reason);
    rc = comm_group_check(group, err);
    return rc != ERR_OK ? rc : err_copy(err, reason); /* one rank */
}

void comm_group_tell(comm_group_t *group, const err_t *fault)
{
    if (group->ops->fail != NULL && comm_group_check(group, NULL) == ERR_OK)
        group->ops->fail(group, fault);
}

/* ---- arena --------------------------------------------------------------- */

err_code_t comm_arena_open(comm_group_t *group, size_t bytes,
                           comm_arena_t **out, err_t *err)
{
    comm_arena_t *arena;
    err_code_t rc;

    if (group->ops->arena_open != NULL)
        return group->ops->arena_open(group, bytes, out, err);
    rc = mem_new(comm_arena_t, 1, "comm arena", &arena, err);
    if (rc != ERR_OK)
        return rc;
    rc = group->dev == NULL
             ? mem_alloc(bytes, "comm arena", &arena->data, err)
             : dev_alloc(group->dev, bytes, "comm arena", &arena->data, err);
    if (rc != ERR_OK) {
        mem_free(arena);
        return rc;
    }
    arena->group = group;
    *out = arena;
    return ERR_OK;
}

void *comm_arena_data(comm_arena_t *arena)
{
    return arena->data;
}

void comm_arena_close(comm_arena_t *arena)
{
    if (arena == NULL)
        return;
    if (arena->group->ops->arena_close != NULL) {
        arena->group->ops->arena_close(arena);
        return;
    }
    if (arena->group->dev == NULL)
        mem_free(arena->data);
    else
        dev_free(arena->group->dev, arena->data);
    mem_free(arena);
}
