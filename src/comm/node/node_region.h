/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A region: memory that one rank allocates and other ranks of its node map. */
#ifndef CDDP_COMM_NODE_REGION_H
#define CDDP_COMM_NODE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What other ranks need to know to map the region. */
typedef struct node_region {
    int64_t pid; /* process that made the region */
    /* Its descriptor in that process; -1: the region could not be made. */
    int64_t fd;
    uint64_t nonce; /* random number that is also stored after the data */
} node_region_t;

/* Make and map a region of [bytes] zeroed bytes. ERR_MEMORY if there is too
 * little memory. The caller closes region->fd when all ranks have mapped the
 * region. */
err_code_t node_region_make(size_t bytes, node_region_t *region, void **map,
                            err_t *err);
/* Map the region of another rank. False if it cannot be opened, or has another
 * nonce. */
bool node_region_map(const node_region_t *region, size_t bytes, void **map);
/* Unmap *map, which may be NULL, and set it to NULL. */
void node_region_unmap(void **map, size_t bytes);

#endif
