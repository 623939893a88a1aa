/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Memory that the ranks of a node map. All of it is collective over the group,
 * and answers the same on all ranks. */
#ifndef CDDP_COMM_NODE_SHM_H
#define CDDP_COMM_NODE_SHM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct node node_t;

/* Map memory of the ranks of this node (of its first only, unless [all]), of
 * [bytes] zeroed bytes each, into maps[ranks of the node] (maps[0]). */
err_code_t node_shm_share(node_t *node, size_t bytes, bool all, void **maps,
                          err_t *err);
/* Not collective. */
void node_shm_unmap(void **maps, int count, size_t bytes);
/* Are all ranks of the group [well]? The first one that is not is named, as one
 * that cannot do [what] ("map memory"). votes[size] is scratch. */
err_code_t node_shm_agree(node_t *node, bool well, const char *what,
                          char *votes, err_t *err);

#endif
