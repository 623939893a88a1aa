/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* nodesets: node sets of the states of ckpt_fixture.h. Node k has the home
 * ROOT/node-k. */
#ifndef CDDP_TESTS_NODESETS_H
#define CDDP_TESTS_NODESETS_H

#include "ckpt_fixture.h"
#include "hdf5io/nodeset.h"

/* Ranks and nodes, and what the calls below return. */
typedef struct nodesets {
    const char *root;
    int ranks, per_node;
    bool copies;   /* all ranks are partners */
    uint64_t keep; /* the newest set, which the next save keeps */
    int64_t least; /* of a read */
    /* Calls of the io table on rank 0, the one that fails (0: none), and its
     * errno. */
    int calls, fail_at, error;
    bool strict; /* a read wants another model */
    err_t err;   /* of rank 0 */
    hdf5io_nodeset_found_t found;
} nodesets_t;

/* Save the state [seed]. Returns the code, which all ranks must have. */
err_code_t nodesets_save(nodesets_t *sets, int64_t seed);

/* Save, and assert success. */
void nodesets_save_ok(nodesets_t *sets, int64_t seed);

/* Read. Returns the step of the set; -1: no set was found; minus the code after
 * an error. Asserts that all ranks have found the same set, and have all bits
 * of the state of this step. If no set was found, asserts that no tensor has
 * changed. */
int64_t nodesets_read(nodesets_t *sets);

/* Remove the home of a node. */
void nodesets_lose(const nodesets_t *sets, int node);

/* Path of [file] in the set of [step] on [node]; free() it. */
char *nodesets_path(const nodesets_t *sets, int node, int64_t step,
                    const char *file);

#endif
