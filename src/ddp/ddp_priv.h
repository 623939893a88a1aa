/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The state of the reducer, shared by its files. */
#ifndef CDDP_DDP_DDP_PRIV_H
#define CDDP_DDP_DDP_PRIV_H

#include "comm/comm.h"
#include "ddp/bucket.h"
#include "ddp/ddp.h"
#include "ddp/hook_priv.h"

/* The collective of one bucket in this step. */
typedef struct ddp_flight {
    comm_work_t *work;
    dev_event_t *after; /* on a device: the gradients are written */
    int missing;        /* number of views that are not ready in this step */
    double started;     /* clock instant; 0: not started */
    bool done;
} ddp_flight_t;

/* The all-gather of one bucket's parameters. */
typedef struct ddp_gather {
    comm_work_t *work;
    double started; /* clock instant */
    bool flying;    /* started, and not waited for */
} ddp_gather_t;

typedef struct ddp_half ddp_half_t;

struct ddp {
    comm_group_t *control, *group; /* [group] reduces */
    dev_device_t *dev;    /* whose memory [group] works on; NULL: the host */
    dev_stream_t *stream; /* on which this step's gradients are written */
    comm_arena_t *arena;  /* gradients, then the tail, aligned to MEM_ALIGN */
    float *grads;
    double *tail;
    size_t grad_elems;
    size_t tail_doubles;
    int view_count;
    int *bucket_of_view;
    bool *ready; /* [view_count]: the gradient is final in this step */
    ddp_bucket_t *buckets;
    int bucket_count;
    ddp_flight_t *flights; /* [bucket_count + 1]: the last one is the tail */
    int next;              /* index of the first bucket that has not started */
    const ddp_shards_t *shards; /* ZeRO-1; NULL: not used */
    view_range_t *gaps; /* elements between views, which must stay zero */
    int gap_count;
    bool gaps_due;        /* they are not zeroed yet in this step */
    ddp_gather_t *shares; /* [bucket_count]: all-gathers of parameters */
    uint64_t *hashes;     /* [size]: scratch of check.c, one of each rank */
    ddp_stats_t stats;
    ddp_hooked_t *hooked; /* comm hook that takes turns; NULL: none */
    ddp_half_t *half;     /* fp16 or bf16 on the device; NULL: neither */
    /* The host's copy of a device's gradients, on which the hook works. NULL:
     * there is no hook, or it works on [grads]. */
    float *mirror;  /* pinned, [grad_elems] */
    int mirrored;   /* buckets whose copies were enqueued in this step */
    int64_t step;   /* updates before the next step */
    bool local;     /* this step's gradients stay on this rank */
    trace_t *trace; /* NULL: none */
};

/* zero.c: the additional state of ZeRO-1: gaps and work handles. */
err_code_t ddp_zero_open(ddp_t *ddp, const ddp_layout_t *layout, err_t *err);
void ddp_zero_close(ddp_t *ddp);

/* Zero the gaps, to which the last reduce-scatter may have written, once a
 * step. */
err_code_t ddp_zero_gaps(ddp_t *ddp, err_t *err);

/* mirror.c: a hook wants the host's memory. If gradients are on a device,
 * they are copied to the host while backward runs, and their sums are copied
 * back. The hook uses the collectives of the control group. If the device
 * fails, all ranks learn that this rank cannot go on. */
err_code_t ddp_mirror_open(ddp_t *ddp, err_t *err);
void ddp_mirror_close(ddp_t *ddp);
/* Enqueue the copy of bucket [index], the next one, to the host. */
err_code_t ddp_mirror_start(ddp_t *ddp, int index, err_t *err);
/* Take all turns of the buckets that were copied. If these are all buckets,
 * copy the sums back. [on] waits for this copy; with NULL the host waits. */
err_code_t ddp_mirror_finish(ddp_t *ddp, dev_stream_t *on, err_t *err);

/* half.c: the hooks fp16 and bf16 on a device. */

/* Set ddp->half if the device can round as [rounding] says. Local. */
err_code_t ddp_half_open(ddp_t *ddp, const ddp_rounding_t *rounding,
                         err_t *err);
void ddp_half_close(ddp_t *ddp);
/* Bytes that bucket [index] sends. */
size_t ddp_half_bytes(const ddp_t *ddp, int index);
/* Enqueue on the step's stream that the gradients of bucket [index] are
 * rounded. */
err_code_t ddp_half_round(ddp_t *ddp, int index, err_t *err);
/* Start the sum of the rounded gradients. Does not wait for the device. */
comm_state_t ddp_half_start(ddp_t *ddp, int index, comm_work_t **work,
                            err_t *err);
/* After the sums: convert all of them to gradients on the stream [on]. With
 * NULL this is done on the step's stream, and the host waits for it. */
err_code_t ddp_half_widen(ddp_t *ddp, dev_stream_t *on, err_t *err);
/* As ddp_hook_parts. */
int ddp_half_parts(const ddp_t *ddp, ddp_hook_part_t *parts);

/* place.c: what depends on where the arena is. Where a device fails, all ranks
 * learn that this rank cannot go on. */

/* Zero [count] gradients from element [first] on. */
err_code_t ddp_place_zero(ddp_t *ddp, size_t first, size_t count, err_t *err);
/* Let the next collective begin behind what [stream] has now, at which [event]
 * is recorded. */
err_code_t ddp_place_after(ddp_t *ddp, dev_event_t *event, dev_stream_t *stream,
                           err_t *err);
/* Wait for [work], which began behind [event], and release it: on the host, or
 * with [on] on that stream. */
err_code_t ddp_place_wait(ddp_t *ddp, comm_work_t *work, dev_event_t *event,
                          dev_stream_t *on, err_t *err);
/* Make the stream [on] wait for what the step's stream has now. If [on] is
 * NULL, the host waits for it. [reason] gets the error of dev. */
err_code_t ddp_place_join(ddp_t *ddp, dev_stream_t *on, err_t *reason);
/* Return [rc], the result of a call of dev with the error [reason], as an error
 * of the data group. */
err_code_t ddp_place_result(ddp_t *ddp, err_code_t rc, const err_t *reason,
                            err_t *err);

/* Compare the parameter tables. ERR_CONFIG on every rank if some rank has
 * another table than rank 0; the message names that rank. Allocates nothing.
 * Collective. */
err_code_t ddp_layout_check(ddp_t *ddp, const ddp_layout_t *layout, err_t *err);

#endif
