/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Memory that all ranks of a node map: every rank makes a segment (or the first
 * of a node, ucx_segment.h), tells the others where it is, and maps theirs.
 */
#include <unistd.h>

#include "base/mem.h"
#include "comm/ucx_group.h"
#include "comm/ucx_node.h"
#include "comm/ucx_segment.h"

void ucx_shm_unmap(void **maps, int count, size_t bytes)
{
    for (int i = 0; i < count; i++)
        ucx_segment_unmap(&maps[i], bytes);
}

err_code_t ucx_shm_agree(ucx_group_t *group, bool well, const char *what,
                         char *votes, err_t *err)
{
    char mine = (char)well;
    err_code_t code = comm_allgather(&group->base, &mine, 1, votes, err);

    for (int rank = 0; code == ERR_OK && rank < group->base.size; rank++)
        if (!votes[rank])
            code = err_set(err, ERR_UNAVAILABLE,
                           "rank %d on %s cannot %s of the other ranks on its "
                           "node: it opens /proc/PID/fd (the ranks must be of "
                           "one user, with room for descriptors: ulimit -n)",
                           comm_rank_name(&group->base, rank),
                           group->base.hellos[rank].host, what);
    return code;
}

/* Has every rank that was to make memory made it? */
static err_code_t tickets_check(const ucx_group_t *group,
                                const ucx_ticket_t *tickets, size_t bytes,
                                bool all, err_t *err)
{
    const ucx_place_t *place = &group->place;

    for (int node = 0; node < place->nodes; node++)
        for (int i = 0; i < (all ? ucx_place_count(place, node) : 1); i++) {
            int rank = ucx_place_rank(place, node, i);

            if (tickets[rank].fd < 0)
                return err_set(
                    err, ERR_MEMORY,
                    "rank %d on %s cannot get %zu bytes of memory that "
                    "the ranks of its node share",
                    comm_rank_name(&group->base, rank),
                    group->base.hellos[rank].host, bytes);
        }
    return ERR_OK;
}

static bool tickets_map(const ucx_group_t *group, const ucx_ticket_t *tickets,
                        size_t bytes, int count, void **maps)
{
    const ucx_place_t *place = &group->place;
    bool well = true;

    for (int i = 0; i < count; i++) {
        int rank = ucx_place_rank(place, place->here, i);

        if (maps[i] == NULL)
            well &= ucx_segment_find(&tickets[rank], bytes, &maps[i]);
    }
    return well;
}

err_code_t ucx_shm_share(ucx_group_t *group, size_t bytes, bool all,
                         void **maps, err_t *err)
{
    size_t size = (size_t)group->base.size;
    int local = group->place.local, count = all ? group->place.count : 1;
    ucx_ticket_t mine = {.fd = -1};
    void *tickets = NULL;
    err_t reason = ERR_INIT;
    bool well = false;
    err_code_t made = ERR_OK;
    err_code_t code =
        mem_alloc(size * sizeof mine, "comm tickets", &tickets, err);

    if (code != ERR_OK)
        return code;
    if (local < count)
        made = ucx_segment_make(bytes, &mine, &maps[local], &reason);
    code = comm_allgather(&group->base, &mine, sizeof mine, tickets, err);
    if (code == ERR_OK)
        code = tickets_check(group, tickets, bytes, all, err);
    if (code == ERR_OK)
        well = tickets_map(group, tickets, bytes, count, maps);
    if (code == ERR_OK) /* the tickets are spent: they hold the votes */
        code = ucx_shm_agree(group, well, "map memory", tickets, err);
    if (made != ERR_OK) {
        code = made;
        if (err != NULL)
            *err = reason;
    }
    if (mine.fd >= 0)
        close((int)mine.fd);
    if (code != ERR_OK)
        ucx_shm_unmap(maps, count, bytes);
    mem_free(tickets);
    return code;
}

/* ---- arena --------------------------------------------------------------- */

err_code_t ucx_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                          err_t *err)
{
    ucx_group_t *group = (ucx_group_t *)base;
    ucx_node_t *node = &group->node;
    size_t maps = (size_t)group->place.count * sizeof(void *);
    ucx_arena_t *arena;
    void *memory = NULL;
    err_code_t code;

    code = mem_alloc(sizeof *arena + maps, "comm arena", &memory, err);
    if (code != ERR_OK)
        return code;
    arena = memory;
    arena->base.group = base;
    arena->bytes = bytes;
    arena->shared = atomic_load(&node->open) && node->opened < UCX_NODE_ARENAS;
    if (arena->shared) {
        code = ucx_shm_share(group, bytes, true, arena->maps, err);
        arena->base.data = arena->maps[group->place.local];
    } else {
        code = mem_alloc(bytes, "comm arena", &arena->base.data, err);
    }
    if (code != ERR_OK) {
        mem_free(arena);
        return code;
    }
    if (arena->shared) {
        arena->number = node->opened++;
        node->arenas[arena->number] = arena;
    }
    *out = &arena->base;
    return ERR_OK;
}

void ucx_arena_close(comm_arena_t *base)
{
    ucx_arena_t *arena = (ucx_arena_t *)base;
    ucx_group_t *group = (ucx_group_t *)base->group;

    if (arena->shared) {
        group->node.arenas[arena->number] = NULL;
        ucx_shm_unmap(arena->maps, group->place.count, arena->bytes);
    } else {
        mem_free(base->data);
    }
    mem_free(arena);
}
