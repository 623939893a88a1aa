/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The hook of a reducer, and the collectives of its buckets. */
#ifndef CDDP_DDP_HOOK_PRIV_H
#define CDDP_DDP_HOOK_PRIV_H

#include "ddp/bucket.h"
#include "ddp/ddp.h"
#include "ddp/hook.h"

extern const ddp_hook_ops_t ddp_hook_none, ddp_hook_fp16, ddp_hook_bf16,
    ddp_hook_powersgd;

/* How fp16 and bf16 round the gradients of a rank. */
typedef struct ddp_rounding {
    comm_type_t type; /* COMM_FLOAT16 or COMM_BFLOAT16 */
    float largest;    /* limit of a sum over ranks, so that it stays finite */
    double unit;      /* largest relative error of a rounding to nearest */
    bool feedback;    /* rounding errors are kept for the next step */
} ddp_rounding_t;

/* What the hook of a configuration does, and where. Without a hook: nothing, on
 * the host. */
typedef struct ddp_hook_choice {
    ddp_hook_place_t place;
    bool rounds; /* it only rounds: [rounding] says how */
    ddp_rounding_t rounding;
} ddp_hook_choice_t;

/* Look up the hook of [config] for gradients in the memory of [dev] (NULL: of
 * the host). ERR_CONFIG if the hook works on a device and there is none. */
err_code_t ddp_hook_choose(const ddp_config_t *config, const dev_device_t *dev,
                           ddp_hook_choice_t *out, err_t *err);

/* The largest magnitude that the gradients of a rank may have, so that the sum
 * over [size] ranks stays finite, in whatever order the ranks are added. */
float ddp_rounding_limit(const ddp_rounding_t *rounding, int size);

/* wire.c: the collectives of one bucket. */
struct ddp_wire {
    comm_group_t *group;
    ddp_stats_t *stats; /* statistics of the reducer */
    comm_work_t *works[DDP_WIRE_WORKS];
    int count;
    /* For a hook on a device: the stream of this step, and events on this
     * stream behind which [works] begin. For other hooks NULL. */
    dev_stream_t *stream;
    dev_event_t *after[DDP_WIRE_WORKS];
    double started; /* clock instant when the first of [works] started */
    bool flying;    /* some of [works] are not known to be complete */
    /* of the first of [works]: "all-reduce" or "all-gather" */
    const char *what;
    trace_t *trace; /* NULL: none */
    int bucket;     /* from 0 */
};

/* If all works are complete, add their time to the statistics. Never blocks. */
void ddp_wire_poll(ddp_wire_t *wire);

typedef struct ddp_hooked ddp_hooked_t;

/* All that a hook needs to work on. */
typedef struct ddp_hooked_plan {
    const ddp_layout_t *layout;
    const ddp_bucket_t *buckets;
    int bucket_count;
    /* Gradient arena; NULL: only memory is counted, no step is made. */
    float *grads;
    comm_group_t *group; /* NULL if no step is made */
    /* [grads] and the buffers of collectives are in the memory of this device.
     * NULL: of the host. */
    dev_device_t *dev;
    ddp_stats_t *stats; /* bytes and seconds are added here */
    int rank, size;
} ddp_hooked_plan_t;

/* Open the hook that [config] names; *out is NULL if it names none. The
 * pointers of [plan] must outlive it. Local. */
err_code_t ddp_hooked_open(const ddp_config_t *config,
                           const ddp_hooked_plan_t *plan, ddp_hooked_t **out,
                           err_t *err);
void ddp_hooked_close(ddp_hooked_t *hooked); /* NULL allowed */

/* Begin a step; [step] is the number of updates made so far. A hook on a device
 * enqueues on [stream]. */
void ddp_hooked_begin(ddp_hooked_t *hooked, int64_t step, dev_stream_t *stream);

/* Take turn 0 of [bucket]. */
err_code_t ddp_hooked_start(ddp_hooked_t *hooked, int bucket, err_t *err);
/* Note which collectives are complete, for the statistics. Never blocks. */
void ddp_hooked_poll(ddp_hooked_t *hooked);

/* Take all other turns if turn 0 was taken for all buckets; [started] is the
 * number of buckets for which it was. Waits for all collectives in any case.
 * Returns the first error. */
err_code_t ddp_hooked_finish(ddp_hooked_t *hooked, int started, err_t *err);

/* From now on trace the turns, and the collectives of each bucket, in [trace],
 * which may be NULL: see ddp_trace. */
void ddp_hooked_trace(ddp_hooked_t *hooked, trace_t *trace);

/* See ddp_hook_parts. */
int ddp_hooked_parts(ddp_hooked_t *hooked, ddp_hook_part_t *parts);

#endif
