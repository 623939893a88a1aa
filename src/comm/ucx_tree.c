/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The tree all-reduce. Which rank holds which subtrees does not matter for the
 * sum, but every element's subtrees must meet in one place: so the elements are
 * cut into one slice per rank, its owner. Every rank sends each of its views'
 * slices to the owners; an owner folds along the tree and hands the result to
 * all. Per rank this moves (views + 1) times the data and needs scratch for one
 * slice per view of the whole group; segments keep that within the scratch.
 *
 * Ranks first gather who holds what, 16 bytes each.
 */
#include <inttypes.h>
#include <string.h>

#include "comm/ucx_group.h"

enum { ASK, GATHER, SCATTER, FOLD, NEXT };

typedef struct slice {
    size_t offset, bytes; /* in every view, and in data */
    size_t count;
} slice_t;

static slice_t slice_of(const ucx_lane_t *lane, int owner)
{
    const comm_request_t *what = &lane->work->request;
    size_t width = comm_type_bytes(what->type);
    size_t begin = lane->at + (size_t)owner * lane->slice;
    slice_t slice = {0};

    if (begin >= what->count)
        return slice;
    slice.count =
        what->count - begin < lane->slice ? what->count - begin : lane->slice;
    slice.offset = begin * width;
    slice.bytes = slice.count * width;
    return slice;
}

static int views_of(const ucx_lane_t *lane, int rank)
{
    return comm_tree_views(lane->ranges[2 * rank], lane->ranges[2 * rank + 1],
                           lane->work->request.leaves);
}

/* Check what was gathered and size the slices. */
static bool tree_plan(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = &lane->work->request;
    size_t ranks = (size_t)group->base.size, views = 0;
    size_t part = (what->count + ranks - 1) / ranks;
    int64_t next = 0;
    err_t fault = ERR_INIT;

    for (int rank = 0; rank < group->base.size; rank++) {
        int64_t first = lane->ranges[2 * rank];
        int64_t held = lane->ranges[2 * rank + 1];

        if (held > 0 && first != next) {
            err_set(&fault, ERR_CONFIG,
                    "tree all-reduce %" PRIu64 ": rank %d holds leaves from "
                    "%" PRId64 " on, but the ranks before it end at %" PRId64,
                    lane->number, rank, first, next);
            break;
        }
        next += held;
        views += (size_t)views_of(lane, rank);
    }
    if (fault.code == ERR_OK && next != what->leaves)
        err_set(&fault, ERR_CONFIG,
                "tree all-reduce %" PRIu64 ": the ranks hold %" PRId64
                " leaves of %" PRId64,
                lane->number, next, what->leaves);
    if (fault.code != ERR_OK) {
        ucx_group_fail(group, &fault);
        return false;
    }
    /* There are leaves (comm.c), so somebody has a view of them. */
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    lane->slice = ucx_scratch_bytes(group->base.size) / views /
                  comm_type_bytes(what->type);
    if (lane->slice > part)
        lane->slice = part;
    return true;
}

static void tree_scatter(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = &lane->work->request;
    int size = group->base.size, rank = group->base.rank;
    slice_t mine = slice_of(lane, rank);
    char *place = lane->scratch;

    for (int peer = 0; peer < size && mine.count > 0; peer++)
        for (int i = peer == rank ? 0 : views_of(lane, peer); i > 0; i--) {
            ucx_lane_recv(lane, peer, place, mine.bytes);
            place += mine.bytes;
        }
    for (int distance = 1; distance < size; distance++) {
        int owner = (rank + distance) % size;
        slice_t slice = slice_of(lane, owner);

        for (int i = 0; slice.count > 0 && i < views_of(lane, rank); i++)
            ucx_lane_send(lane, owner, (char *)what->views[i] + slice.offset,
                          slice.bytes);
    }
}

/* Fold this rank's slice and put the result into data. */
static void tree_fold(ucx_group_t *group, ucx_lane_t *lane)
{
    const comm_request_t *what = &lane->work->request;
    slice_t mine = slice_of(lane, group->base.rank);
    char *place = lane->scratch;
    comm_fold_t fold;

    if (mine.count == 0)
        return;
    comm_fold_begin(&fold, what->leaves, mine.count, what->type);
    for (int rank = 0; rank < group->base.size; rank++) {
        int64_t at = lane->ranges[2 * rank];
        int64_t end = at + lane->ranges[2 * rank + 1];

        for (int i = 0; at < end; i++) {
            int64_t next = comm_tree_view_end(at, end, what->leaves);

            if (rank == group->base.rank) {
                comm_fold_push(&fold, at, next,
                               (char *)what->views[i] + mine.offset);
            } else {
                comm_fold_push(&fold, at, next, place);
                place += mine.bytes;
            }
            at = next;
        }
    }
    memmove((char *)what->data + mine.offset, comm_fold_total(&fold),
            mine.bytes);
}

static void tree_share(ucx_group_t *group, ucx_lane_t *lane)
{
    char *data = lane->work->request.data;
    int size = group->base.size, rank = group->base.rank;
    slice_t mine = slice_of(lane, rank);

    for (int distance = 1; distance < size; distance++) {
        int from = (rank - distance + size) % size;
        slice_t slice = slice_of(lane, from);

        if (slice.count > 0)
            ucx_lane_recv(lane, from, data + slice.offset, slice.bytes);
        if (mine.count > 0)
            ucx_lane_send(lane, (rank + distance) % size, data + mine.offset,
                          mine.bytes);
    }
}

static void tree_ask(ucx_lane_t *lane)
{
    const comm_request_t *what = &lane->work->request;

    lane->range[0] = what->first;
    lane->range[1] = what->held;
    lane->inner = (comm_request_t){.kind = COMM_ALLGATHER,
                                   .data = lane->ranges,
                                   .count = sizeof lane->range,
                                   .mine = lane->range};
    lane->request = &lane->inner;
}

bool ucx_tree(ucx_group_t *group, ucx_lane_t *lane)
{
    switch (lane->state) {
    case ASK:
        tree_ask(lane);
        lane->state = GATHER;
        return true;
    case GATHER:
        if (ucx_bruck(group, lane))
            return true;
        lane->state = SCATTER;
        return tree_plan(group, lane);
    case SCATTER:
        tree_scatter(group, lane);
        lane->state = FOLD;
        return true;
    case FOLD:
        tree_fold(group, lane);
        tree_share(group, lane);
        lane->state = NEXT;
        return true;
    default:
        lane->at += lane->slice * (size_t)group->base.size;
        lane->state = SCATTER;
        return lane->at < lane->work->request.count;
    }
}
