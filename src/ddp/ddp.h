/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ddp: keeps the replicas of a model together. It sees an arena of parameter
 * gradients cut into views, and a group; it knows no layer. Gradients are
 * summed over ranks in buckets (contiguous views of the arena, formed in arena
 * order); a bucket's all-reduce starts when its last gradient is ready and runs
 * while backward goes on (Li et al., "PyTorch Distributed", VLDB 2020, for the
 * idea). The gradients are sums already divided by the global denominator, so
 * the sum over ranks is the gradient of the global mean; a rank without samples
 * gives zeros.
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
#include "base/view.h"
#include "comm/comm.h"
#include "ddp/hook.h"
#include "ddp/shard.h"

typedef struct ddp ddp_t;

/* Local SGD, which is the caller's part: see ddp_step_local. */
typedef struct ddp_local_sgd {
    int64_t period; /* updates from average to average; 0: none */
    int64_t start;  /* updates before the first local one */
} ddp_local_sgd_t;

struct ddp_config {   /* the run file's `ddp` section */
    int backend;      /* choice: auto, self, threads, ucx */
    char *comm_table; /* path; empty: the built-in one; for the caller */
    double bucket_cap_mb, first_bucket_mb, last_bucket_mb; /* MiB */
    opt_every_t check_every; /* OPT_STEPS or OPT_NEVER; for the caller */
    ddp_local_sgd_t local_sgd;
    int zero;           /* choice: 0, 1 (ZeRO-1): needs shards */
    const tree_t *hook; /* as the run file's `ddp.hook`; NULL: none */
    /* Hooks beside the built-in ones, which [hook] may name, too; ends with
     * NULL; NULL: none. Outlives the reducer. */
    const ddp_hook_ops_t *const *hooks;
};

extern const opt_row_t ddp_options[];

/* The chosen backend's name ("auto"), for comm_config_t. */
const char *ddp_backend_name(const ddp_config_t *config);

/* ---- comm hooks: see hook.h ---------------------------------------------- */

/* Does [config] ask for a hook? */
bool ddp_hook_wanted(const ddp_config_t *config);

/* Is what it asks for one, with options that it has? ERR_CONFIG with
 * file:line:column. */
err_code_t ddp_hook_check(const ddp_config_t *config, err_t *err);

void ddp_hook_document(str_buf_t *out);

/* Bytes that the hook of [config] needs on each of [ranks] ranks beside the
 * gradients of [layout], as far as it tells; opens it to see. Local. */
err_code_t ddp_hook_bytes(const ddp_config_t *config,
                          const ddp_layout_t *layout, int ranks, size_t *bytes,
                          err_t *err);

/* ---- the reducer --------------------------------------------------------- */

/* One parameter's view of the gradient arena. */
typedef view_t ddp_view_t;

struct ddp_layout {
    const ddp_view_t *views; /* in arena order, not overlapping */
    int view_count;
    size_t grad_elems;   /* float32 elements of the arena */
    size_t tail_doubles; /* float64 sums that travel with the last bucket */
    /* ZeRO-1: after a step this rank has the sums of its own ranges only, and
     * ddp_share hands parameters around. Outlives the reducer. NULL: every rank
     * has all sums. */
    const ddp_shards_t *shards;
};

typedef struct ddp_stats { /* since the last ddp_stats_take */
    double comm_s;         /* sum over buckets of start -> completion */
    double exposed_s;      /* time that ddp_step_wait blocked */
    int64_t bytes;
} ddp_stats_t;

/* Open over [group]; checks that every rank has the same layout (names, sizes,
 * order: ERR_CONFIG names the ranks that differ); opens the gradient arena
 * through comm. Copies [layout]. Collective. */
err_code_t ddp_open(const ddp_config_t *config, comm_group_t *group,
                    const ddp_layout_t *layout, ddp_t **out, err_t *err);
void ddp_close(ddp_t *ddp);

float *ddp_grads(ddp_t *ddp); /* [grad_elems] */
double *ddp_tail(ddp_t *ddp); /* [tail_doubles] */
size_t ddp_grad_elems(const ddp_t *ddp);
size_t ddp_tail_doubles(const ddp_t *ddp);
int ddp_buckets(const ddp_t *ddp);

/* Copy [bytes] at [data] from rank 0 to all (initial parameters, buffers). */
err_code_t ddp_broadcast(ddp_t *ddp, void *data, size_t bytes, err_t *err);

/* Do all ranks hold the same [bytes] at [data] (their parameters)? Compares
 * hashes; ERR_DIVERGED on every rank names the rank, as err->culprit, too,
 * whose bytes are not those of the majority: a memory or compute error there,
 * since all ranks make the same updates. Collective; blocks; allocates nothing.
 */
err_code_t ddp_replica_check(ddp_t *ddp, const void *data, size_t bytes,
                             err_t *err);

/* Tell the hook that [step] updates were made so far (after a resume; it counts
 * from there on). ERR_CONFIG unless that is from 0 to DDP_STEP_MAX, which
 * leaves room to count; nothing is changed then. */
#define DDP_STEP_MAX (INT64_MAX / 4)
err_code_t ddp_step_set(ddp_t *ddp, int64_t step, err_t *err);

/* The state of the hook that a checkpoint keeps, into [parts] (room for
 * DDP_HOOK_PARTS); how many. */
int ddp_hook_parts(ddp_t *ddp, ddp_hook_part_t *parts);

/*
 * One step: begin; then grad_ready once per view in any order while the last
 * micro-batch's backward runs (earlier micro-batches call nothing); then wait.
 * A rank without samples (or one that failed on the way) calls
 * ddp_step_skip instead of the rest of a backward: gradients of buckets not yet
 * started are zeroed and count as ready; the tail is sent as it is. After wait,
 * grads and tail hold the sums over ranks, the same bits everywhere (with
 * shards, other ranks' ranges of grads hold anything). */
void ddp_step_begin(ddp_t *ddp);
err_code_t ddp_grad_ready(ddp_t *ddp, int view, err_t *err);
err_code_t ddp_step_skip(ddp_t *ddp, err_t *err);
err_code_t ddp_step_wait(ddp_t *ddp, err_t *err);

/* Behind ddp_step_begin: the gradients of this step stay on this rank; the tail
 * alone is reduced, from ddp_step_skip on, which all ranks call. Gradients that
 * were not reported ready are zeros after it. */
void ddp_step_local(ddp_t *ddp);

/*
 * ZeRO-1, after wait: this rank has updated its range of [bucket] in the arena
 * [params], laid out as the gradients; start to hand it around. All ranks call
 * this for every bucket, in one order; then share_wait, which blocks: all ranks
 * have all of it, the same bits. [params] may be the gradients' own arena.
 */
err_code_t ddp_share(ddp_t *ddp, int bucket, float *params, err_t *err);
err_code_t ddp_share_wait(ddp_t *ddp, err_t *err);

ddp_stats_t ddp_stats_take(ddp_t *ddp);

#endif
