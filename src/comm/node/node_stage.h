/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Staged all-reduces: of memory outside arenas; in a group on one node, of data
 * that is too large for a one-shot.
 *
 * A buffer is divided into segments, which are numbered consecutively through
 * all works. Each rank has a ring of STAGE_SLOTS slots in memory that the node
 * maps; segment s uses slot s % STAGE_SLOTS. A rank copies a segment into its
 * slot and raises the flag. When all ranks have done so, the segment is summed
 * in rank order, in one of two ways:
 *
 * - whole: every rank sums the whole segment directly into its own buffer, and
 *   waits for the flags only. Two ranks do so; more ranks do if the segment is
 *   small.
 * - in pieces: each rank claims pieces and sums them into the slot of the
 *   node's first rank. When all pieces are done, all ranks copy the result from
 *   there.
 *
 * With several nodes the first ranks of a node own the segments of a work in
 * turn. The owner sums a segment over the node into the slot of the first rank,
 * and reduces it with its owners on the other nodes; then all ranks copy the
 * result from there.
 *
 * Each rank publishes the number of segments that it has consumed. A slot is
 * written again when all ranks have consumed its contents. So ranks copy a
 * segment in while other ranks sum the previous one.
 *
 * The owner thread of a rank copies while it starts, polls or waits for any
 * work. If it computes instead, ranks that wait for it wake its comm thread,
 * which copies for it (node_stage_help). All of this happens under node.lock.
 */
#ifndef CDDP_COMM_NODE_STAGE_H
#define CDDP_COMM_NODE_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct node node_t;
typedef struct node_work node_work_t;

/* Share memory for staging. Collective over the group, after node_control_open.
 * ERR_MEMORY, ERR_UNAVAILABLE: there is no staging. */
err_code_t node_stage_open(node_t *node, err_t *err);
void node_stage_close(node_t *node);

/* Start [work], and post its first segments. Owner. */
void node_stage_start(node_t *node, node_work_t *work);
/* Do one step if one is possible, and return whether it was. Any thread. */
bool node_stage_progress(node_t *node);
/* Return whether a step is possible. May be wrong while another thread does a
 * step. Any thread. */
bool node_stage_ready(node_t *node);
/* Return whether this rank has started segments that it has not consumed. Any
 * thread. */
bool node_stage_busy(const node_t *node);

/* ---- several nodes: for the owners of segments --------------------------- */

/* Number of segments of [work], after its start. */
uint64_t node_stage_segments(const node_work_t *work);
/* Return whether all ranks of the node have posted [segment]. */
bool node_stage_arrived(const node_t *node, uint64_t segment);
/* Return whether all ranks request the same operation in [segment], which all
 * have posted. If they do not, fail the group. */
bool node_stage_agrees(node_t *node, uint64_t segment);
/* The place to which rank [local] copies [segment]. All ranks copy the result
 * from the place of rank 0. */
char *node_stage_place(const node_t *node, int local, uint64_t segment);
/* Tell that the result of [segment] is in the place of rank 0. */
void node_stage_done(node_t *node, uint64_t segment);

/* ---- presence ------------------------------------------------------------ */

/* Tell whether the owner is inside comm. */
void node_stage_present(node_t *node, bool present);
/* To be called before the owner sleeps: wake the comm threads of ranks for
 * which it waits and whose owners are not present. */
void node_stage_wake_absent(node_t *node);
/* Return whether a step is possible while the owner is not present. Comm
 * thread. */
bool node_stage_needs_help(node_t *node);
/* Do that step, and return whether there was one. Comm thread. */
bool node_stage_help(node_t *node);

#endif
