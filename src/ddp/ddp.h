/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ddp: the reducer, which keeps the replicas of a model equal. It works on an
 * arena of gradients, divided into one view per parameter, and on a group; it
 * knows no layers. Gradients are summed over ranks in buckets (contiguous
 * views, in the order of the arena). The all-reduce of a bucket starts when its
 * last gradient is ready and is overlapped with backward (the idea is from Li
 * et al., "PyTorch Distributed", VLDB 2020). Gradients are already divided by
 * the global denominator, so their sum over ranks is the gradient of the global
 * mean. A rank without samples adds zeros.
 *
 * The gradients may be in the memory of a device: that of the data group
 * (comm_group_dev). Then they are computed on a stream, and a bucket's
 * all-reduce begins behind what the stream had when its last gradient became
 * ready. The host waits for the sums, or the stream does.
 *
 * Thread rule: one thread. Every rank makes the same calls in the same order.
 */
#ifndef CDDP_DDP_DDP_H
#define CDDP_DDP_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/trace.h"
#include "base/view.h"
#include "comm/comm.h"
#include "ddp/hook.h"
#include "ddp/shard.h"

typedef struct ddp ddp_t;

/* Local SGD: the caller averages; see ddp_step_local. */
typedef struct ddp_local_sgd {
    int64_t period; /* updates between two averages; 0: no local SGD */
    int64_t start;  /* updates before the first local one */
} ddp_local_sgd_t;

struct ddp_config {   /* the run file's `ddp` section */
    int backend;      /* choice: auto, self, threads, ucx, nccl */
    char *comm_table; /* path, for the caller; empty: built-in table */
    double bucket_cap_mb, first_bucket_mb, last_bucket_mb; /* MiB */
    opt_every_t check_every; /* OPT_STEPS or OPT_NEVER; for the caller */
    ddp_local_sgd_t local_sgd;
    int zero;           /* choice: 0, 1 (ZeRO-1): needs shards */
    const tree_t *hook; /* subtree ddp.hook of the run file; NULL: no hook */
    /* Hooks that [hook] may name besides the built-in ones, ending with NULL.
     * NULL: no such hooks. Must outlive the reducer. */
    const ddp_hook_ops_t *const *hooks;
};

extern const opt_row_t ddp_options[];

/* The name of the configured backend (such as "auto"), for comm_config_t. */
const char *ddp_backend_name(const ddp_config_t *config);

/* ---- comm hooks: see hook.h ---------------------------------------------- */

/* Return whether [config] names a hook other than "none". */
bool ddp_hook_wanted(const ddp_config_t *config);

/* Check name and options of the hook. ERR_CONFIG with file:line:column. */
err_code_t ddp_hook_check(const ddp_config_t *config, err_t *err);

void ddp_hook_document(str_buf_t *out);

/* Bytes of memory that the hook of [config] needs on each of [ranks] ranks for
 * the gradients of [layout]; 0 if the hook cannot tell. Local. */
err_code_t ddp_hook_bytes(const ddp_config_t *config,
                          const ddp_layout_t *layout, int ranks, size_t *bytes,
                          err_t *err);

/* ---- the reducer --------------------------------------------------------- */

/* One parameter's view of the gradient arena. */
typedef view_t ddp_view_t;

struct ddp_layout {
    const ddp_view_t *views; /* in the order of the arena, not overlapping */
    int view_count;
    size_t grad_elems;   /* size of the arena in float32 elements */
    size_t tail_doubles; /* float64 sums that are reduced after all buckets */
    /* ZeRO-1: after a step this rank has only the sums of its own ranges, and
     * ddp_share all-gathers parameters. Must outlive the reducer. NULL: every
     * rank has all sums. */
    const ddp_shards_t *shards;
};

typedef struct ddp_stats { /* since the last ddp_stats_take */
    /* Seconds from start to completion of collectives, summed over buckets. */
    double comm_s;
    /* Seconds in ddp_step_wait: communication that was not overlapped. */
    double exposed_s;
    int64_t bytes;
} ddp_stats_t;

/* Open over two groups of the same ranks: [control] compares, [data] reduces;
 * on the CPU they may be one. ERR_CONFIG names the ranks whose layout differs
 * (names, sizes, order). Opens the gradient arena through [data]. If the host
 * cannot access the arena, a hook on the host works on a copy, and sums it over
 * [control]. If one rank fails, all ranks get its error (comm_vote). Copies
 * [layout]; the groups must outlive the reducer. Collective; blocks. */
err_code_t ddp_open(const ddp_config_t *config, comm_group_t *control,
                    comm_group_t *data, const ddp_layout_t *layout, ddp_t **out,
                    err_t *err);
/* NULL allowed. On a device: when its streams have been waited for. */
void ddp_close(ddp_t *ddp);

/* Memory of the data group's device. */
float *ddp_grads(ddp_t *ddp); /* [grad_elems] */
double *ddp_tail(ddp_t *ddp); /* [tail_doubles] */
size_t ddp_grad_elems(const ddp_t *ddp);
size_t ddp_tail_doubles(const ddp_t *ddp);
int ddp_buckets(const ddp_t *ddp);

/* Copy [data], on the host, from rank 0 to all ranks. Collective; blocks. */
err_code_t ddp_broadcast(ddp_t *ddp, void *data, size_t bytes, err_t *err);

/* Check that [hash], a hash of the parameters, is equal on all ranks.
 * ERR_DIVERGED on every rank names the rank (also as
 * err->culprit) that differs from the majority: all ranks make the same
 * updates, so the memory or CPU of that rank has made an error. Collective;
 * blocks; allocates nothing. */
err_code_t ddp_replica_check(ddp_t *ddp, uint64_t hash, err_t *err);

/* Set the number of updates so far (after a resume). ERR_CONFIG, without a
 * change, if [step] is not between 0 and DDP_STEP_MAX. */
#define DDP_STEP_MAX (INT64_MAX / 4)
err_code_t ddp_step_set(ddp_t *ddp, int64_t step, err_t *err);

/* List the hook's state for checkpoints in [parts], which has DDP_HOOK_PARTS
 * elements. Returns the number of parts. */
int ddp_hook_parts(ddp_t *ddp, ddp_hook_part_t *parts);
/* Does a hook work on the host's copy of a device's gradients? */
bool ddp_hook_away(const ddp_t *ddp);
/* Does a hook take turns? Then no graph of the device can contain a step. */
bool ddp_hook_turns(const ddp_t *ddp);

/*
 * The calls of a step, in this order:
 * - begin. [stream], of the data group's device, is the one on which gradients
 *   and tail are written. NULL if the host can access the memory.
 * - grad_ready once per view, in any order, during backward of the last
 *   micro-batch (none for earlier micro-batches). A rank without samples, or
 *   with an error, calls ddp_step_skip instead of the rest of backward:
 *   gradients of buckets that have not started are zeroed and count as ready;
 *   the tail is reduced as it is. (If the group has other collectives between
 *   buckets, such a rank first calls ddp_step_zero, which only zeroes. Before
 *   each other collective it reports as many gradients as the other ranks.)
 * - wait, which blocks. Then grads and tail have the sums over ranks, with the
 *   same bits on all ranks. (With shards, grads are undefined in the ranges of
 *   other ranks.) Or wait_on: then operations that are enqueued on [stream]
 *   later find the sums; it blocks no longer than the data group needs
 *   (comm_work_wait_on); with a hook on the host it blocks like wait.
 * begin, grad_ready, zero and skip do not block, unless a hook does in its
 * first turn. After an error of grad_ready, zero or skip (ERR_PEER, or an error
 * of the hook), wait must still be called, as it frees what the step has
 * started; then grads and tail are undefined, and no further step can be made.
 */
void ddp_step_begin(ddp_t *ddp, dev_stream_t *stream);
err_code_t ddp_grad_ready(ddp_t *ddp, int view, err_t *err);
err_code_t ddp_step_zero(ddp_t *ddp, err_t *err);
err_code_t ddp_step_skip(ddp_t *ddp, err_t *err);
err_code_t ddp_step_wait(ddp_t *ddp, err_t *err);
err_code_t ddp_step_wait_on(ddp_t *ddp, dev_stream_t *stream, err_t *err);

/* Call this instead of begin .. wait if a device's graph repeats a step. */
void ddp_step_replay(ddp_t *ddp);

/* Call after ddp_step_begin for a local step, which reduces only the tail. All
 * ranks then call ddp_step_skip, which starts this reduction. Buckets that lack
 * a gradient are zeroed. */
void ddp_step_local(ddp_t *ddp);

/*
 * ZeRO-1, after wait: this rank has updated its range of [bucket] in the arena
 * [params], which has the layout of the gradients. Start the all-gather of the
 * bucket. All ranks call this for every bucket, in the same order, then
 * share_wait, which blocks. Then all ranks have all parameters, with the same
 * bits. [params] may be the arena of the gradients. On a device the update is
 * what was enqueued on [stream] so far, and share_wait_on is like step_wait_on.
 */
err_code_t ddp_share(ddp_t *ddp, int bucket, float *params,
                     dev_stream_t *stream, err_t *err);
err_code_t ddp_share_wait(ddp_t *ddp, err_t *err);
err_code_t ddp_share_wait_on(ddp_t *ddp, dev_stream_t *stream, err_t *err);

ddp_stats_t ddp_stats_take(ddp_t *ddp);

/* From now on, trace the collectives of buckets in [trace], which belongs to
 * the thread that makes the steps. A span ends when this thread notices the end
 * of its collective. Bucket b has track b + 1, and the tail has the last track.
 * Turns of a hook are spans of the thread. */
void ddp_trace(ddp_t *ddp, trace_t *trace);

#endif
