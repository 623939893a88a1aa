/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The all-reduce along a tree, on GPUs. It works as in the backend ucx
 * (ucx_tree.c): the elements are divided into slices. Each rank owns one slice.
 * Every rank sends the slices of each of its views to their owners. An owner
 * sums the slices along the tree, in its scratch. Then all ranks gather the
 * results. If the slices do not fit into the scratch, the data is divided into
 * segments, which are summed one after the other.
 *
 * All of this is enqueued at once. So the host must know beforehand which rank
 * has which leaves. Unless the caller gives the ranges of all ranks, the ranks
 * tell each other their leaves over the group of the host.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm_fold.h"
#include "comm/nccl/nccl_add.h"
#include "comm/nccl/nccl_group.h"
#include "comm/reduce.h"
#include "dev/dev_cuda.h"

/* Slices begin at multiples of so many elements, if the scratch has room for
 * that: NCCL and the GPU are fast at aligned addresses. */
#define ALIGN ((size_t)64)

/* ---- open and close ------------------------------------------------------ */

err_code_t nccl_tree_open(nccl_group_t *group, err_t *err)
{
    const size_t size = (size_t)group->base.size;
    nccl_tree_t *tree = &group->tree;
    err_code_t rc;

    if (tree->bytes == 0)
        return ERR_OK;
    rc = mem_new(nccl_leaves_t, size, "leaves of ranks", &tree->asked, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, 2 * size, "leaves of ranks", &tree->ranges, err);
    if (rc == ERR_OK)
        rc = mem_new(size_t, size + 1, "slices of ranks", &tree->cuts, err);
    if (rc == ERR_OK)
        rc = dev_alloc(group->base.dev, tree->bytes, "comm tree",
                       &tree->scratch, err);
    return rc;
}

void nccl_tree_close(nccl_group_t *group)
{
    dev_free(group->base.dev, group->tree.scratch);
    mem_free(group->tree.asked);
    mem_free(group->tree.ranges);
    mem_free(group->tree.cuts);
}

/* ---- the plan ------------------------------------------------------------ */

/* Number of views of [rank]. */
static int views_of(const nccl_group_t *group, const comm_request_t *request,
                    int rank)
{
    const int64_t *ranges = group->tree.ranges;

    return comm_tree_views(ranges[2 * rank], ranges[2 * rank + 1],
                           request->leaves);
}

/* Choose how many elements a slice has. The owner needs scratch for the slices
 * of all views but its own. 0: not even one element fits. */
static size_t slice_choose(const nccl_group_t *group,
                           const comm_request_t *request)
{
    const size_t size = (size_t)group->base.size;
    size_t part = (request->count + size - 1) / size, room;
    int views = 0, least = COMM_VIEWS_MAX;

    part = (part + ALIGN - 1) / ALIGN * ALIGN;
    for (int rank = 0; rank < group->base.size; rank++) {
        const int one = views_of(group, request, rank);

        views += one;
        least = one < least ? one : least;
    }
    if (views == least)
        return part;
    room = group->tree.bytes / (size_t)(views - least) /
           comm_type_bytes(request->type);
    if (room >= ALIGN)
        room -= room % ALIGN;
    return part < room ? part : room;
}

/* Give [mine] to all ranks, and get theirs, over the group of the host. */
static err_code_t leaves_exchange(nccl_group_t *group,
                                  const nccl_leaves_t *mine, err_t *err)
{
    const comm_request_t request = {.kind = COMM_ALLGATHER,
                                    .data = group->tree.asked,
                                    .count = sizeof *mine,
                                    .mine = mine};

    return nccl_beside(group, &request, err);
}

/* Take the ranges from what the ranks have told each other. All ranks find the
 * same error. */
static err_code_t ranges_take(nccl_group_t *group, err_t *err)
{
    const nccl_leaves_t *asked = group->tree.asked;
    int64_t *ranges = group->tree.ranges;

    for (int rank = 0; rank < group->base.size; rank++) {
        if (asked[rank].leaves != asked[0].leaves ||
            asked[rank].count != asked[0].count ||
            asked[rank].type != asked[0].type)
            return err_set(err, ERR_CONFIG,
                           "tree all-reduce %" PRIu64 ": rank %d asks for "
                           "%" PRId64 " elements of type %s over %" PRId64
                           " leaves, rank 0 for %" PRId64 " elements of type "
                           "%s over %" PRId64 " leaves",
                           group->tree.number, rank, asked[rank].count,
                           comm_type_name((comm_type_t)asked[rank].type),
                           asked[rank].leaves, asked[0].count,
                           comm_type_name((comm_type_t)asked[0].type),
                           asked[0].leaves);
        ranges[2 * rank] = asked[rank].first;
        ranges[2 * rank + 1] = asked[rank].held;
    }
    return ERR_OK;
}

static err_code_t ranges_find(nccl_group_t *group,
                              const comm_request_t *request, err_t *err)
{
    const nccl_leaves_t mine = {request->first, request->held, request->leaves,
                                (int64_t)request->count, request->type};
    err_code_t rc = ERR_OK;

    if (request->ranges != NULL) {
        memcpy(group->tree.ranges, request->ranges,
               2 * (size_t)group->base.size * sizeof *request->ranges);
    } else {
        rc = leaves_exchange(group, &mine, err);
        if (rc == ERR_OK)
            rc = ranges_take(group, err);
    }
    return rc == ERR_OK
               ? comm_tree_check(group->tree.ranges, group->base.size,
                                 request->leaves, group->tree.number, err)
               : rc;
}

err_code_t nccl_tree_meet(nccl_group_t *group, const comm_request_t *request,
                          err_t *err)
{
    err_code_t rc;

    if (comm_type_rounds(request->type)) /* nccl_add cannot add it */
        return err_set(err, ERR_CONFIG,
                       "a GPU cannot sum %s along a tree, only float32, "
                       "float64, int32 and int64",
                       comm_type_name(request->type));
    if (group->tree.bytes == 0)
        return err_set(err, ERR_CONFIG,
                       "a group of the backend nccl that was opened without "
                       "tree_scratch cannot sum along a tree");
    group->tree.number++;
    rc = ranges_find(group, request, err);
    if (rc != ERR_OK)
        return rc;
    group->tree.slice = slice_choose(group, request);
    return group->tree.slice > 0
               ? ERR_OK
               : err_set(err, ERR_CONFIG,
                         "tree all-reduce %" PRIu64 ": %zu bytes of "
                         "tree_scratch are too few for %" PRId64
                         " leaves on %d ranks",
                         group->tree.number, group->tree.bytes, request->leaves,
                         group->base.size);
}

/* ---- one segment --------------------------------------------------------- */

typedef struct segment {
    nccl_group_t *group;
    const comm_request_t *request;
    cudaStream_t stream;
    size_t at; /* first element */
} segment_t;

/* Number of elements in the slice of [owner]; *first is the first of them. */
static size_t slice_of(const segment_t *segment, int owner, size_t *first)
{
    const size_t count = segment->request->count;
    const size_t slice = segment->group->tree.slice;

    *first = segment->at + (size_t)owner * slice;
    if (*first >= count)
        return 0;
    return count - *first < slice ? count - *first : slice;
}

/* Address of element [first] of this rank's view [i]. */
static char *view_at(const segment_t *segment, int i, size_t first)
{
    return (char *)segment->request->views[i] +
           first * comm_type_bytes(segment->request->type);
}

static bool well(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Send to [peer] its slice of all views of this rank. */
static ncclResult_t views_send(const segment_t *segment, int peer)
{
    const nccl_group_t *group = segment->group;
    const int views = views_of(group, segment->request, group->base.rank);
    ncclResult_t result = ncclSuccess;
    size_t first;
    const size_t count = slice_of(segment, peer, &first);

    for (int i = 0; well(result) && count > 0 && i < views; i++)
        result = group->nccl->Send(view_at(segment, i, first), count,
                                   nccl_type(segment->request->type), peer,
                                   group->comm, segment->stream);
    return result;
}

/* Receive this rank's slice of all views of [peer]. The slices are stored from
 * *place on, and *place becomes their end. */
static ncclResult_t views_receive(const segment_t *segment, int peer,
                                  char **place)
{
    const nccl_group_t *group = segment->group;
    const comm_type_t type = segment->request->type;
    const int views = views_of(group, segment->request, peer);
    ncclResult_t result = ncclSuccess;
    size_t first;
    const size_t count = slice_of(segment, group->base.rank, &first);

    for (int i = 0; well(result) && count > 0 && i < views; i++) {
        result = group->nccl->Recv(*place, count, nccl_type(type), peer,
                                   group->comm, segment->stream);
        *place += count * comm_type_bytes(type);
    }
    return result;
}

/* Send all slices to their owners, and receive this rank's slices, in one group
 * of calls. */
static err_code_t segment_scatter(const segment_t *segment, err_t *err)
{
    nccl_group_t *group = segment->group;
    const nccl_library_t *nccl = group->nccl;
    char *place = group->tree.scratch;
    ncclResult_t result = nccl->GroupStart();

    for (int peer = 0; well(result) && peer < group->base.size; peer++) {
        if (peer == group->base.rank)
            continue;
        result = views_send(segment, peer);
        if (well(result))
            result = views_receive(segment, peer, &place);
    }
    if (well(result))
        result = nccl->GroupEnd();
    return nccl_call_end(group, result, "a sum along a tree", err);
}

/* What the additions of a fold need, and their first error. */
typedef struct adder {
    cudaStream_t stream;
    err_code_t rc;
    err_t *err;
} adder_t;

static void slices_add(void *context, void *to, const void *from, size_t count,
                       comm_type_t type)
{
    adder_t *adder = context;

    if (adder->rc == ERR_OK)
        adder->rc = nccl_add(to, from, count, type, adder->stream, adder->err);
}

/* Sum this rank's slice along the tree, and copy the result to [data]. */
static err_code_t segment_fold(const segment_t *segment, err_t *err)
{
    const nccl_group_t *group = segment->group;
    const comm_request_t *what = segment->request;
    const size_t width = comm_type_bytes(what->type);
    adder_t adder = {.stream = segment->stream, .err = err};
    char *place = group->tree.scratch, *to;
    size_t first;
    const size_t count = slice_of(segment, group->base.rank, &first);
    comm_fold_t fold;

    if (count == 0)
        return ERR_OK;
    comm_fold_begin(&fold, what->leaves, count, what->type);
    fold.add = slices_add;
    fold.context = &adder;
    for (int rank = 0; rank < group->base.size; rank++) {
        int64_t at = group->tree.ranges[2 * rank];
        const int64_t end = at + group->tree.ranges[2 * rank + 1];

        if (rank == group->base.rank)
            comm_fold_push_views(&fold, at, end - at, what->views,
                                 first * width);
        for (int64_t next; rank != group->base.rank && at < end; at = next) {
            next = comm_tree_view_end(at, end, what->leaves);
            comm_fold_push(&fold, at, next, place);
            place += count * width;
        }
    }
    to = (char *)what->data + first * width;
    if (adder.rc != ERR_OK || to == comm_fold_total(&fold))
        return adder.rc;
    return dev_cuda_check(
        cudaMemcpyAsync(to, comm_fold_total(&fold), count * width,
                        cudaMemcpyDeviceToDevice, segment->stream),
        "cudaMemcpyAsync", "a sum along a tree", err);
}

/* Give all ranks the results of all slices. */
static err_code_t segment_gather(const segment_t *segment, err_t *err)
{
    nccl_group_t *group = segment->group;
    size_t *cuts = group->tree.cuts, first;
    comm_request_t request = *segment->request;

    request.kind = COMM_GATHER_RANGES;
    request.data =
        (char *)request.data + segment->at * comm_type_bytes(request.type);
    request.cuts = cuts;
    cuts[0] = 0;
    for (int rank = 0; rank < group->base.size; rank++)
        cuts[rank + 1] = cuts[rank] + slice_of(segment, rank, &first);
    return nccl_call(group, &request, err);
}

err_code_t nccl_tree_call(nccl_group_t *group, const comm_request_t *request,
                          err_t *err)
{
    segment_t segment = {.group = group,
                         .request = request,
                         .stream = dev_cuda_stream(group->stream)};
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && segment.at < request->count) {
        rc = segment_scatter(&segment, err);
        if (rc == ERR_OK)
            rc = segment_fold(&segment, err);
        if (rc == ERR_OK)
            rc = segment_gather(&segment, err);
        segment.at += group->tree.slice * (size_t)group->base.size;
    }
    return rc;
}
