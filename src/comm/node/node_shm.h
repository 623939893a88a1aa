/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Memory that the ranks of a node map. Functions are collective over the group
 * and return equal results on all ranks, unless said otherwise. */
#ifndef CDDP_COMM_NODE_SHM_H
#define CDDP_COMM_NODE_SHM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct node node_t;

/* Map [bytes] zeroed bytes of each rank of this node into maps[ranks of the
 * node]. If [all] is false, only the memory of the node's first rank, into
 * maps[0]. [maps] NULL: this rank has no memory for the array, so all ranks
 * fail. Allocates nothing but the shared memory. */
err_code_t node_shm_share(node_t *node, size_t bytes, bool all, void **maps,
                          err_t *err);
/* Unmap the first [count] entries of [maps]; NULL entries are allowed. Not
 * collective. */
void node_shm_unmap(void **maps, int count, size_t bytes);
/* ERR_OK if [well] is true on all ranks of the group. Otherwise
 * ERR_UNAVAILABLE, with a message that the first rank where it is false cannot
 * do [what] ("map memory"). */
err_code_t node_shm_agree(node_t *node, bool well, const char *what,
                          err_t *err);

#endif
