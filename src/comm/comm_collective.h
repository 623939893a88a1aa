/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Collective operations of a comm group (comm.h, which includes this).
 *
 * All ranks of the group start every collective in the same order with equal
 * arguments (except the buffers). It completes later: start returns a work
 * handle, which is polled or waited for. All ranks get the same bits, because
 * each element is summed by one rank in a fixed order.
 *
 * Thread rule: one thread (the owner) calls start and wait; poll may be called
 * from any thread. Nothing is allocated.
 *
 * In a group over a device (comm_config_t.dev) all data is memory of that
 * device; arguments such as [cuts] and [views] are arrays of the host.
 */
#ifndef CDDP_COMM_COMM_COLLECTIVE_H
#define CDDP_COMM_COMM_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dev/dev.h"

typedef struct comm_group comm_group_t;
typedef struct comm_work comm_work_t;

/* 16-bit floats (base/half.h) are summed in 32-bit floats and rounded once,
 * except where docs/COMM.md says otherwise. */
typedef enum comm_type {
    COMM_FLOAT32,
    COMM_FLOAT64,
    COMM_INT64,
    COMM_INT32,
    COMM_BFLOAT16,
    COMM_FLOAT16
} comm_type_t;
/* A NaN makes a maximum or minimum NaN. Integer sums wrap around. */
typedef enum comm_op { COMM_SUM, COMM_MAX, COMM_MIN } comm_op_t;

/* Results of start and poll. */
typedef enum comm_state { COMM_DONE, COMM_PENDING, COMM_FAILED } comm_state_t;

/* Groups over a device: the next collective that is started begins behind
 * [event], which was recorded on the stream that writes the data. The event
 * must not be recorded again before the work is done. But if the group only
 * enqueues (comm_group_enqueues), the event may be recorded again as soon as
 * start has returned. Later collectives do not wait for the event. If start
 * returns COMM_DONE, nothing is left to be done behind the event. */
void comm_group_after(comm_group_t *group, dev_event_t *event);

/* Record [event] on [stream], and call comm_group_after. If the device fails,
 * all ranks get a fault that names this rank (comm_group_result). */
err_code_t comm_group_after_stream(comm_group_t *group, dev_event_t *event,
                                   dev_stream_t *stream, err_t *err);

/* In-place all-reduce of [count] elements at [data]. */
comm_state_t comm_allreduce_start(comm_group_t *group, void *data, size_t count,
                                  comm_type_t type, comm_op_t op,
                                  comm_work_t **work, err_t *err);

struct comm_plan; /* comm_plan.h */

/* Static name of the algorithm that comm_allreduce would use for such a sum
 * ("ring"). Equal on all ranks. */
const char *comm_allreduce_name(const comm_group_t *group, const void *data,
                                size_t count, comm_type_t type);
/* The whole plan of it (comm_plan.h). False: the backend has one way only, and
 * [out] is all zeros. The same on all ranks. */
bool comm_allreduce_plan(const comm_group_t *group, const void *data,
                         size_t count, comm_type_t type, struct comm_plan *out);

/* The leaves of a tree that a rank has. */
typedef struct comm_leaves {
    int64_t first, held; /* this rank's first leaf; number of its leaves */
    int64_t leaves;      /* leaves of all ranks together */
    /* (optional) [2 * size]: first leaf and number of leaves of each rank; the
     * same on all ranks. If [ranges] is given, ranks of nccl need not tell each
     * other their leaves. The call copies the numbers. */
    const int64_t *ranges;
} comm_leaves_t;

/*
 * Sum along one fixed binary tree over leaves 0 .. leaves-1. The tree does not
 * depend on which rank has which leaves. The tree over [a, b) is the sum of the
 * tree over [a, a + p) and the tree over [a + p, b), in this order, where p is
 * the largest power of two below b - a. Its nodes are the blocks [a 2^k, (a +
 * 1) 2^k), cut off at [leaves]. Each rank has a contiguous range of leaves;
 * together these ranges, in rank order, are all leaves. A rank may have none
 * (held 0). This rank has [mine], already folded to maximal subtrees (see
 * comm_tree_view_end): [views] has comm_tree_views(first, held, leaves) arrays
 * of [count] elements, in order. [data] gets the total on every rank; it may be
 * one of [views]. The arrays of [views] are used as scratch and must stay until
 * the work is done; [mine] and the array of pointers are copied. Any
 * distribution of leaves gives the same bits.
 */
comm_state_t comm_allreduce_tree_start(comm_group_t *group, void *const *views,
                                       const comm_leaves_t *mine, void *data,
                                       size_t count, comm_type_t type,
                                       comm_work_t **work, err_t *err);

/* Number of maximal aligned subtrees that cover leaves [first, first + held)
 * of a tree over [leaves] leaves. Pure. */
int comm_tree_views(int64_t first, int64_t held, int64_t leaves);

/* End of the maximal subtree that begins at leaf [begin] and does not extend
 * beyond [end], in a tree over [leaves] leaves; begin < end. To find the views
 * of a range, begin each subtree at the end of the previous one. Pure. */
int64_t comm_tree_view_end(int64_t begin, int64_t end, int64_t leaves);

/* Copy [bytes] bytes at [data] from rank [root] to all ranks. */
comm_state_t comm_broadcast_start(comm_group_t *group, void *data, size_t bytes,
                                  int root, comm_work_t **work, err_t *err);

/* Gather [bytes] bytes at [mine] of each rank in [all] (size * bytes) on every
 * rank. */
comm_state_t comm_allgather_start(comm_group_t *group, const void *mine,
                                  size_t bytes, void *all, comm_work_t **work,
                                  err_t *err);

/*
 * The two halves of an all-reduce. The elements at [data] are divided into one
 * range per rank: rank r owns elements cuts[r] .. cuts[r + 1] - 1. So [cuts]
 * has size + 1 entries in ascending order, the first of which is 0; a range may
 * be empty. All ranks pass equal cuts, and the array must not change until the
 * work is done. The longest range determines the time: make ranges equally
 * long.
 *
 * Reduce-scatter leaves the reduced elements in this rank's range; all other
 * elements of [data] are undefined afterwards. All-gather of ranges sends this
 * rank's range and fills the others. See docs/COMM.md for when the two give the
 * bits of comm_allreduce.
 */
comm_state_t comm_reduce_scatter_start(comm_group_t *group, void *data,
                                       const size_t *cuts, comm_type_t type,
                                       comm_op_t op, comm_work_t **work,
                                       err_t *err);
comm_state_t comm_allgather_ranges_start(comm_group_t *group, void *data,
                                         const size_t *cuts, comm_type_t type,
                                         comm_work_t **work, err_t *err);

comm_state_t comm_barrier_start(comm_group_t *group, comm_work_t **work,
                                err_t *err);

/* ---- works --------------------------------------------------------------- */

/* The state of [work]. Never blocks; does not release [work]. */
comm_state_t comm_work_poll(comm_work_t *work);

/* Wait for [work] and release it. If it is NULL, return ERR_OK at once (start
 * sets it to NULL when it returns COMM_DONE). Blocks until the work is done or
 * a fault is found. */
err_code_t comm_work_wait(comm_work_t *work, err_t *err);

/* Like comm_work_wait, but for groups over a device: operations that are
 * enqueued on [stream] later begin when the result is in the device's memory.
 * Blocks the host no longer than the backend needs it. An error that comes
 * later is one of the next work, or of comm_group_check. [stream] must have
 * been waited for when the group is closed. */
err_code_t comm_work_wait_on(comm_work_t *work, dev_stream_t *stream,
                             err_t *err);

/* ---- start and wait in one ----------------------------------------------- */

/* Groups over a device: sum [count] numbers of the device's memory, between
 * what [stream] has now and what is enqueued on it later. [event] is recorded
 * as in comm_group_after_stream; otherwise like comm_work_wait_on. */
err_code_t comm_sum_on(comm_group_t *group, double *numbers, size_t count,
                       dev_event_t *event, dev_stream_t *stream, err_t *err);

err_code_t comm_allreduce(comm_group_t *group, void *data, size_t count,
                          comm_type_t type, comm_op_t op, err_t *err);
err_code_t comm_allreduce_tree(comm_group_t *group, void *const *views,
                               const comm_leaves_t *mine, void *data,
                               size_t count, comm_type_t type, err_t *err);
err_code_t comm_broadcast(comm_group_t *group, void *data, size_t bytes,
                          int root, err_t *err);
err_code_t comm_allgather(comm_group_t *group, const void *mine, size_t bytes,
                          void *all, err_t *err);
err_code_t comm_reduce_scatter(comm_group_t *group, void *data,
                               const size_t *cuts, comm_type_t type,
                               comm_op_t op, err_t *err);
err_code_t comm_allgather_ranges(comm_group_t *group, void *data,
                                 const size_t *cuts, comm_type_t type,
                                 err_t *err);
err_code_t comm_barrier(comm_group_t *group, err_t *err);

#endif
