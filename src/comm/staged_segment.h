/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The segments of a staged collective (comm_staged.h). A segment is a
 * collective of the same kind over some of the elements, whose data is in a
 * slot of host memory. All ranks cut equal requests into equal segments. A
 * segment of a reduce-scatter or an all-gather of ranges has elements of every
 * rank's range, so that all ranks take part in its sum. Pure.
 */
#ifndef CDDP_COMM_STAGED_SEGMENT_H
#define CDDP_COMM_STAGED_SEGMENT_H

#include "comm/comm_ops.h"

/* What all segments of a rank have in common. */
typedef struct staged_shape {
    int rank, size;
    size_t room; /* bytes of a slot, at least staged_room_least */
} staged_shape_t;

/* Bytes that are copied together between the device and a slot. */
typedef struct staged_span {
    char *device, *host;
    size_t bytes;
    bool in, out; /* to the host before, to the device after the collective */
} staged_span_t;

typedef struct staged_segment {
    comm_request_t request; /* for the inner group */
    staged_span_t *spans;   /* [staged_spans_most], of which [span_count] are
                               used */
    int span_count;
    size_t *cuts;                /* [size + 1]: the request's */
    void *views[COMM_VIEWS_MAX]; /* the request's */
} staged_segment_t;

/* Least bytes of a slot, and the largest number of spans of a segment, for
 * [size] ranks. */
size_t staged_room_least(int size);
size_t staged_spans_most(int size);

/* Number of segments of [request], at least 1. */
size_t staged_segments(const staged_shape_t *shape,
                       const comm_request_t *request);

/* Fill in [segment], number [index] of [request], with data in the slot [host],
 * which is aligned to MEM_ALIGN. */
void staged_segment_make(const staged_shape_t *shape,
                         const comm_request_t *request, size_t index,
                         char *host, staged_segment_t *segment);

#endif
