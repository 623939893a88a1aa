/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * optim: optimizers, which update the parameter arena in one pass, and
 * schedules of the learning rate. SGD, Adam, AdamW and RMSprop have the update
 * rules of torch.optim, so that results can be compared; LARS and LAMB have
 * those of their papers. The order of computation depends only on the layout,
 * so all ranks get the same bits.
 */
#ifndef CDDP_OPTIM_OPTIM_H
#define CDDP_OPTIM_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crew.h"
#include "base/err.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/tree.h"
#include "base/view.h"

typedef struct optim optim_t;
typedef struct optim_schedule optim_schedule_t;

/* One parameter in the arena; patterns of groups are matched with its name. */
typedef view_t optim_view_t;

typedef struct optim_layout {
    const optim_view_t *views; /* in the order of the arena, not overlapping */
    int view_count;
    size_t elems; /* elements of the arena; the gaps between views stay zero */
    /* Elements that this rank updates and keeps state for: ascending ranges
     * without overlap. Each begins at a multiple of OPTIM_UNIT, and ends at one
     * or at the end of the arena. NULL: all elements. */
    const view_range_t *ranges;
    int range_count;
} optim_layout_t;

#define OPTIM_UNIT 4096 /* elements; ranges consist of whole units */

/* The run file's `ema` section. */
typedef struct optim_ema {
    double decay;  /* 0: no moving average */
    bool evaluate; /* evaluations use the average (the caller does this) */
} optim_ema_t;

extern const opt_row_t optim_ema_options[];

/*
 * Open an optimizer from the run file's `optimizer` value: "sgd", or {adamw:
 * {lr: ...}}. The map may also have `groups`, a list of maps. A group has
 * `match` (patterns of parameter names, as in a shell), and options for the
 * parameters that match: any option of the optimizer, `lr_scale`, `freeze`.
 * Groups apply in order; a later one overrides an earlier one key by key. A
 * pattern without a match is an error. State is allocated and zeroed. [ema] may
 * be NULL. Arguments may be freed afterwards. ERR_CONFIG with file:line:column.
 */
err_code_t optim_open(const tree_t *optimizer, const optim_ema_t *ema,
                      const optim_layout_t *layout, optim_t **out, err_t *err);
void optim_close(optim_t *optim); /* NULL allowed */

/* Start the moving average with the initial parameters. */
void optim_start(optim_t *optim, const float *params);

const char *optim_name(const optim_t *optim);
double optim_lr(const optim_t *optim); /* the base rate, without groups */

/* Multiply the base rate, and so the rate of every group, by [factor]. */
void optim_scale_lr(optim_t *optim, double factor);

/* Use up to [threads] threads of the ops' team in an update. Default: 1. */
void optim_team(optim_t *optim, int threads);

/* From now on, updates, norms and clipping that the calling thread asks for use
 * the threads of [crew] (not owned), which must have no other job meanwhile.
 * NULL: the threads of the ops' team again. */
void optim_crew(crew_t *crew);

/* Number of elements of frozen parameters. */
size_t optim_frozen(const optim_t *optim);

/* Bytes of state and average that this rank keeps. */
size_t optim_state_bytes(const optim_t *optim);

/* Zero this rank's gradients of frozen parameters, so norms exclude them. */
void optim_mask(const optim_t *optim, float *grads);

/* Update params[0 .. elems) with [grads] and learning rate [lr], which each
 * group multiplies by its own factor. [update] is the number of the update,
 * counted from 1, for bias correction. Update 1 starts the moving average.
 * [update] is not the number of the step, as some steps make no update.
 * Allocates nothing. */
void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t update);

/*
 * An update in parts, for an optimizer with ranges. First prepare. Then the
 * caller sums the vector of optim_sums over the ranks (it has one length on all
 * ranks; length 0: no sums are needed). Each rank has filled in the entries of
 * its ranges; other entries are 0. Then apply for each range, in any order.
 * Norms of tensors are sums over fixed blocks, so the bits do not depend on the
 * ranges.
 */
void optim_prepare(optim_t *optim, float *params, const float *grads,
                   int64_t update);
double *optim_sums(optim_t *optim, size_t *count);
void optim_apply(optim_t *optim, int range, float *params, const float *grads,
                 double lr, int64_t update);

/* State slots ("momentum"; "exp_avg", "exp_avg_sq"; "ema"), for checkpoints.
 * Each is an arena with the layout of the parameters, of which this rank has
 * its ranges. */
int optim_slots(const optim_t *optim);
const char *optim_slot_name(const optim_t *optim, int slot);
/* The memory of a slot: an arena; with ranges, this rank's, without gaps. */
float *optim_slot_data(optim_t *optim, int slot);
/* Address of element [elem] of a slot; the rest of its range follows it. NULL:
 * this rank does not have the element. */
float *optim_slot_at(optim_t *optim, int slot, size_t elem);

/* The moving average of the parameters; NULL if none, or if sharded. */
const float *optim_average(const optim_t *optim);

/* Copy this rank's ranges of the moving average, if any, to [params]. */
void optim_average_store(const optim_t *optim, float *params);

/* The norm of [elems] gradients: the root of the sum of squares, which is
 * computed in float64 over fixed blocks. In this and the following functions up
 * to [threads] threads share the work; their number changes no bit. */
double optim_norm(const float *grads, size_t elems, int threads);

/*
 * The norm in parts. blocks: the number of blocks of an arena. part: write the
 * sums of squares of the blocks in [range] (see optim_layout_t) of the arena
 * [grads] to [blocks]. whole: the norm from the sums of all blocks.
 */
size_t optim_norm_blocks(size_t elems);
void optim_norm_part(const float *grads, view_range_t range, double *blocks,
                     int threads);
double optim_norm_whole(const double *blocks, size_t count);

/* Scale [elems] gradients as optim_clip does for gradients of norm [norm]. */
void optim_clip_by(float *grads, size_t elems, double norm, double limit,
                   int threads);

/* Scale gradients so that their norm is at most [limit] (0: no limit). Returns
 * the norm before scaling. As torch.nn.utils.clip_grad_norm_. */
double optim_clip(float *grads, size_t elems, double limit, int threads);

/* Clamp each gradient to [-limit, limit] (0: no limit). NaN stays NaN. As
 * torch.nn.utils.clip_grad_value_. */
void optim_clip_value(float *grads, size_t elems, double limit, int threads);

/* The length of a run, in updates. */
typedef struct optim_span {
    int64_t steps;       /* updates of the whole run */
    int64_t epoch_steps; /* updates of an epoch, >= 1 */
} optim_span_t;

/* Open from the run file's `schedule` value: "constant" (also if absent),
 * {cosine: {warmup_steps: 100}}, ... ERR_CONFIG with file:line:column. */
err_code_t optim_schedule_open(const tree_t *schedule, const optim_span_t *span,
                               optim_schedule_t **out, err_t *err);
void optim_schedule_close(optim_schedule_t *schedule); /* NULL allowed */

/* Learning rate of update [step] (from 0) for the base rate [lr]. Pure. */
double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step);

/* The state of a schedule that watches a metric; all zeros before the first
 * value. Checkpoints store it. */
typedef struct optim_watch {
    double best;
    int64_t seen; /* 1 if [best] is set, else 0 */
    int64_t bad;  /* number of values in a row without improvement */
    int64_t rest; /* number of next values that will not be counted in [bad] */
    int64_t cuts; /* number of cuts of the learning rate so far */
} optim_watch_t;

/* The metric that the schedule watches ("loss", "accuracy"); NULL: none. */
const char *optim_schedule_metric(const optim_schedule_t *schedule);

/* Pass the new [value] of the metric (NaN: no improvement) to a schedule that
 * watches it. Returns whether the learning rate is cut now. */
bool optim_schedule_watch(const optim_schedule_t *schedule, double value,
                          optim_watch_t *watch);

/* Learning rate after the cuts so far; [lr] is from optim_schedule_lr. Pure. */
double optim_schedule_cut(const optim_schedule_t *schedule,
                          const optim_watch_t *watch, double lr);

/* The option table of the optimizer or schedule [name]; NULL: there is none. */
const opt_row_t *optim_option_rows(const char *name);
const opt_row_t *optim_schedule_option_rows(const char *name);

void optim_document(str_buf_t *out);

#endif
