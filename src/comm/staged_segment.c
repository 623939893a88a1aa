/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/staged_segment.h"

#include "base/check.h"
#include "base/mem.h"

/* Bytes of a part of a slot are a multiple of this, if the part has more. */
#define PART_ALIGN ((size_t)MEM_ALIGN)

size_t staged_room_least(int size)
{
    const size_t parts = (size_t)size + 1;

    return (parts > COMM_VIEWS_MAX ? parts : COMM_VIEWS_MAX) * PART_ALIGN;
}

size_t staged_spans_most(int size)
{
    return (size_t)size + 1 > COMM_VIEWS_MAX + 1 ? (size_t)size + 1
                                                 : COMM_VIEWS_MAX + 1;
}

/* Bytes of an element as the request counts them. */
static size_t width_of(const comm_request_t *request)
{
    return request->kind == COMM_BROADCAST || request->kind == COMM_ALLGATHER
               ? 1
               : comm_type_bytes(request->type);
}

/* The parts of a slot: one for the data of each rank, or for each view. The
 * number of views differs between ranks, so it is the largest that any rank may
 * have: two for each level of the tree. */
static size_t parts_of(const staged_shape_t *shape,
                       const comm_request_t *request)
{
    const size_t size = (size_t)shape->size;
    size_t views = 1;

    switch (request->kind) {
    case COMM_ALLGATHER:
        return size + 1;
    case COMM_REDUCE_SCATTER:
    case COMM_GATHER_RANGES:
        return size;
    case COMM_TREE:
        for (int64_t left = request->leaves; left > 1; left = (left + 1) / 2)
            views += 2;
        return views < COMM_VIEWS_MAX ? views : COMM_VIEWS_MAX;
    default:
        return 1;
    }
}

/* Elements of each part that a segment has at most. */
static size_t step_of(const staged_shape_t *shape,
                      const comm_request_t *request)
{
    const size_t part =
        shape->room / parts_of(shape, request) / PART_ALIGN * PART_ALIGN;

    check(part > 0, "a slot of %zu bytes", shape->room);
    return part / width_of(request);
}

/* Elements of the longest part. */
static size_t extent_of(const staged_shape_t *shape,
                        const comm_request_t *request)
{
    size_t longest = 0;

    if (request->cuts == NULL)
        return request->count;
    for (int rank = 0; rank < shape->size; rank++)
        if (request->cuts[rank + 1] - request->cuts[rank] > longest)
            longest = request->cuts[rank + 1] - request->cuts[rank];
    return longest;
}

size_t staged_segments(const staged_shape_t *shape,
                       const comm_request_t *request)
{
    const size_t step = step_of(shape, request);
    const size_t extent = extent_of(shape, request);

    return extent <= step ? 1 : (extent + step - 1) / step;
}

/* ---- one segment -----------------------------------------------------------
 */

static void span_add(staged_segment_t *segment, const staged_span_t *span)
{
    if (span->bytes > 0)
        segment->spans[segment->span_count++] = *span;
}

/* The elements of a segment: [count] from [first] on. */
typedef struct elements {
    size_t first, count, step, width;
} elements_t;

/* Their address in the device's array [data]. */
static char *elements_at(const elements_t *of, const void *data)
{
    return (char *)(uintptr_t)data + of->first * of->width;
}

static void sum_make(const elements_t *of, char *host,
                     staged_segment_t *segment)
{
    comm_request_t *request = &segment->request;

    span_add(segment, &(staged_span_t){.device = elements_at(of, request->data),
                                       .host = host,
                                       .bytes = of->count * of->width,
                                       .in = true,
                                       .out = true});
    request->data = host;
    request->count = of->count;
}

/* View i is in part i, and the result in part 0. */
static void tree_make(const elements_t *of, char *host,
                      staged_segment_t *segment)
{
    comm_request_t *request = &segment->request;
    const size_t bytes = of->count * of->width;
    const int views =
        comm_tree_views(request->first, request->held, request->leaves);

    for (int i = 0; i < views; i++) {
        segment->views[i] = host + (size_t)i * of->step * of->width;
        span_add(segment,
                 &(staged_span_t){.device = elements_at(of, request->views[i]),
                                  .host = segment->views[i],
                                  .bytes = bytes,
                                  .in = true});
    }
    span_add(segment, &(staged_span_t){.device = elements_at(of, request->data),
                                       .host = host,
                                       .bytes = bytes,
                                       .out = true});
    request->views = segment->views;
    request->data = host;
    request->count = of->count;
}

static void broadcast_make(const elements_t *of, bool root, char *host,
                           staged_segment_t *segment)
{
    sum_make(of, host, segment);
    segment->spans[0].in = root;
    segment->spans[0].out = !root;
}

/* This rank's bytes are in the last part, and those of rank r after the
 * collective are at r times their number. */
static void gather_make(const elements_t *of, int size, char *host,
                        staged_segment_t *segment)
{
    comm_request_t *request = &segment->request;
    char *mine = host + (size_t)size * of->step;

    span_add(segment, &(staged_span_t){.device = elements_at(of, request->mine),
                                       .host = mine,
                                       .bytes = of->count,
                                       .in = true});
    for (size_t rank = 0; rank < (size_t)size; rank++)
        span_add(segment,
                 &(staged_span_t){.device = elements_at(of, request->data) +
                                            rank * request->count,
                                  .host = host + rank * of->count,
                                  .bytes = of->count,
                                  .out = true});
    request->mine = mine;
    request->data = host;
    request->count = of->count;
}

/* The parts lie one behind the other. Their lengths differ, as ranges do. */
static void ranges_make(const staged_shape_t *shape, const elements_t *of,
                        char *host, staged_segment_t *segment)
{
    comm_request_t *request = &segment->request;
    const bool scatters = request->kind == COMM_REDUCE_SCATTER;

    segment->cuts[0] = 0;
    for (int rank = 0; rank < shape->size; rank++) {
        const size_t end = request->cuts[rank + 1];
        const size_t begin = request->cuts[rank] + of->first;
        const size_t left = begin < end ? end - begin : 0;
        const size_t count = left < of->step ? left : of->step;
        const bool own = rank == shape->rank;

        span_add(segment,
                 &(staged_span_t){
                     .device = (char *)request->data + begin * of->width,
                     .host = host + segment->cuts[rank] * of->width,
                     .bytes = count * of->width,
                     .in = scatters || own,
                     .out = scatters == own});
        segment->cuts[rank + 1] = segment->cuts[rank] + count;
    }
    request->data = host;
    request->cuts = segment->cuts;
    request->count = segment->cuts[shape->size];
}

void staged_segment_make(const staged_shape_t *shape,
                         const comm_request_t *request, size_t index,
                         char *host, staged_segment_t *segment)
{
    const size_t step = step_of(shape, request);
    elements_t of = {
        .first = index * step, .step = step, .width = width_of(request)};
    const size_t left =
        request->count > of.first ? request->count - of.first : 0;

    of.count = left < step ? left : step;
    segment->request = *request;
    segment->request.after = NULL;
    segment->span_count = 0;
    switch (request->kind) {
    case COMM_ALLREDUCE:
        sum_make(&of, host, segment);
        break;
    case COMM_TREE:
        tree_make(&of, host, segment);
        break;
    case COMM_BROADCAST:
        broadcast_make(&of, request->root == shape->rank, host, segment);
        break;
    case COMM_ALLGATHER:
        gather_make(&of, shape->size, host, segment);
        break;
    case COMM_REDUCE_SCATTER:
    case COMM_GATHER_RANGES:
        ranges_make(shape, &of, host, segment);
        break;
    case COMM_BARRIER:
        break;
    }
    check((size_t)segment->span_count <= staged_spans_most(shape->size),
          "%d spans", segment->span_count);
}
