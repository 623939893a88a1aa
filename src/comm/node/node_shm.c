/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Memory that all ranks of a node map: every rank (or only the first rank of
 * each node) makes a region (node_region.h), tells the other ranks how to find
 * it, and maps theirs.
 */
#include "comm/node/node_shm.h"

#include <unistd.h>

#include "comm/node/node_priv.h"
#include "comm/node/node_region.h"

void node_shm_unmap(void **maps, int count, size_t bytes)
{
    for (int i = 0; i < count; i++)
        node_region_unmap(&maps[i], bytes);
}

static err_code_t exchange(node_t *node, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    return node->config.exchange(node->config.context, mine, bytes, all, err);
}

err_code_t node_shm_agree(node_t *node, bool well, const char *what, err_t *err)
{
    char mine = (char)well, *votes = (char *)node->regions;
    err_code_t rc = exchange(node, &mine, 1, votes, err);

    for (int rank = 0; rc == ERR_OK && rank < node->config.size; rank++)
        if (!votes[rank])
            rc = err_set(err, ERR_UNAVAILABLE,
                         "rank %d on %s cannot %s of the other ranks on its "
                         "node: it opens /proc/PID/fd (the ranks must be of "
                         "one user, with room for descriptors: ulimit -n)",
                         (int)node->config.hellos[rank].name,
                         node->config.hellos[rank].host, what);
    return rc;
}

/* Check that every rank that had to make memory has made it. */
static err_code_t regions_check(const node_t *node,
                                const node_region_t *regions, size_t bytes,
                                bool all, err_t *err)
{
    const node_place_t *place = &node->place;

    for (int at = 0; at < place->nodes; at++)
        for (int i = 0; i < (all ? node_place_count(place, at) : 1); i++) {
            int rank = node_place_rank(place, at, i);

            if (regions[rank].fd < 0)
                return err_set(
                    err, ERR_MEMORY,
                    "rank %d on %s cannot get %zu bytes of memory that "
                    "the ranks of its node share",
                    (int)node->config.hellos[rank].name,
                    node->config.hellos[rank].host, bytes);
        }
    return ERR_OK;
}

/* Map those of the first [count] regions of this node that are not mapped. */
static bool regions_map(const node_t *node, const node_region_t *regions,
                        size_t bytes, int count, void **maps)
{
    const node_place_t *place = &node->place;
    bool well = true;

    for (int i = 0; i < count; i++) {
        int rank = node_place_rank(place, place->here, i);

        if (maps[i] == NULL)
            well &= node_region_map(&regions[rank], bytes, &maps[i]);
    }
    return well;
}

err_code_t node_shm_share(node_t *node, size_t bytes, bool all, void **maps,
                          err_t *err)
{
    int local = node->place.local, count = all ? node->place.count : 1;
    node_region_t mine = {.fd = -1}, *regions = node->regions;
    err_t reason = ERR_INIT;
    bool well = false;
    err_code_t made = ERR_OK, rc;

    if (maps != NULL && local < count)
        made = node_region_make(bytes, &mine, &maps[local], &reason);
    rc = exchange(node, &mine, sizeof mine, regions, err);
    if (rc == ERR_OK)
        rc = regions_check(node, regions, bytes, all, err);
    if (rc == ERR_OK && maps != NULL)
        well = regions_map(node, regions, bytes, count, maps);
    if (rc == ERR_OK)
        rc = node_shm_agree(node, well, "map memory", err);
    if (made != ERR_OK)
        rc = err_copy(err, &reason);
    if (mine.fd >= 0)
        close((int)mine.fd);
    if (rc != ERR_OK && maps != NULL)
        node_shm_unmap(maps, count, bytes);
    return rc;
}
