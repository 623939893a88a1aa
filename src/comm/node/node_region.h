/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A region: memory that one rank makes and other ranks of its node map. */
#ifndef CDDP_COMM_NODE_REGION_H
#define CDDP_COMM_NODE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What other ranks need to find it. */
typedef struct node_region {
    int64_t pid;    /* process that has made it */
    int64_t fd;     /* its descriptor there; -1: the region could not be made */
    uint64_t nonce; /* random; also stored behind the data */
} node_region_t;

/* Make and map a region of [bytes] zeroed bytes; ERR_MEMORY if there is too
 * little memory. The caller closes region->fd when all ranks have mapped it. */
err_code_t node_region_make(size_t bytes, node_region_t *region, void **map,
                            err_t *err);
/* Map the region of another rank; false: it cannot be opened, or the nonce is
 * another one. */
bool node_region_map(const node_region_t *region, size_t bytes, void **map);
/* *map may be NULL, and is set to NULL. */
void node_region_unmap(void **map, size_t bytes);

#endif
