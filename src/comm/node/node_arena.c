/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Arenas of the node stage: memory of each rank that all ranks of its node
 * map. */
#include "base/check.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_shm.h"
#include "comm/node/node_zcopy.h"

bool node_arena_is_free(const node_t *node)
{
    return node_is_open(node) && node->arenas_opened < NODE_ARENAS;
}

err_code_t node_arena_open(node_t *node, size_t bytes, node_arena_t **out,
                           err_t *err)
{
    node_arena_t *arena = NULL;
    err_t own = ERR_INIT;
    err_code_t rc;

    check(node_arena_is_free(node), "arena %u of %d", node->arenas_opened,
          NODE_ARENAS);
    (void)mem_new_tail(node_arena_t, maps, (size_t)node->place.count,
                       "comm arena", &arena, &own);
    rc = node_shm_share(node, bytes, true, arena == NULL ? NULL : arena->maps,
                        err);
    if (arena == NULL) /* so all ranks have failed */
        return err_copy(err, &own);
    if (rc != ERR_OK) {
        mem_free(arena);
        return rc;
    }
    arena->bytes = bytes;
    arena->data = arena->maps[node->place.local];
    arena->number = node->arenas_opened++;
    node->arenas[arena->number] = arena;
    *out = arena;
    return ERR_OK;
}

void node_arena_close(node_t *node, node_arena_t *arena)
{
    check(arena->number < node->arenas_opened &&
              node->arenas[arena->number] == arena,
          "arena %u is closed, which is not open", arena->number);
    node->arenas[arena->number] = NULL;
    node_shm_unmap(arena->maps, node->place.count, arena->bytes);
    mem_free(arena);
}

bool node_arena_holds(const node_t *node, const void *data, size_t bytes)
{
    return node_is_open(node) && node_zcopy_arena(node, data, bytes) != NULL;
}
