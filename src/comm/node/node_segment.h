/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A piece of memory that one rank makes and others of its node map. */
#ifndef CDDP_COMM_NODE_SEGMENT_H
#define CDDP_COMM_NODE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What others need to find it. */
typedef struct node_ticket {
    int64_t pid, fd; /* fd -1: it could not be made */
    uint64_t nonce;
} node_ticket_t;

/* Make and map one of [bytes] zeroed bytes; ERR_MEMORY if there is too little.
 * ticket->fd stays open until all have found it; the caller closes it. */
err_code_t node_segment_make(size_t bytes, node_ticket_t *ticket, void **map,
                             err_t *err);
/* Map that of another rank; false: it cannot be opened or is not the one. */
bool node_segment_find(const node_ticket_t *ticket, size_t bytes, void **map);
/* *map may be NULL; it is afterwards. */
void node_segment_unmap(void **map, size_t bytes);

#endif
