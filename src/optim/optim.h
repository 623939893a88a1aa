/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * optim: optimizers as one flat pass over the parameter arena, and
 * learning-rate schedules. Update rules are PyTorch's where torch.optim has
 * them (SGD, Adam, AdamW, RMSprop), so that recorded numbers can be matched;
 * LARS and LAMB are their papers'. Every number is computed in an order that
 * hangs on the layout alone, so that all ranks get the same bits.
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

/* One parameter in the arena; groups match its name. */
typedef view_t optim_view_t;

typedef struct optim_layout {
    const optim_view_t *views; /* in arena order, not overlapping */
    int view_count;
    size_t elems; /* of the arena; gaps hold zeros and keep them */
    /* The elements that this rank updates and keeps the state of: ascending,
     * apart; each begins at a multiple of OPTIM_UNIT and ends at one or at the
     * arena's end. NULL: all. */
    const view_range_t *ranges;
    int range_count;
} optim_layout_t;

#define OPTIM_UNIT 4096 /* elements that ranges are made of */

/* The run file's `ema` section. */
typedef struct optim_ema {
    double decay;  /* 0: no average */
    bool evaluate; /* evaluation uses the average (the caller's part) */
} optim_ema_t;

extern const opt_row_t optim_ema_options[];

/*
 * Build from the run file's `optimizer` value: "sgd", or {adamw: {lr: ...}},
 * beside which may stand `groups`, a list of maps: `match` (name patterns, as
 * the shell's) and what differs for the parameters they match: any option of
 * the optimizer, `lr_scale`, `freeze`. Groups apply in order; a later one
 * overrides an earlier one key by key. A pattern without a match is an error.
 * State is allocated zeroed. [ema] may be NULL. Nothing of the arguments is
 * kept. ERR_CONFIG with file:line:column.
 */
err_code_t optim_open(const tree_t *optimizer, const optim_ema_t *ema,
                      const optim_layout_t *layout, optim_t **out, err_t *err);
void optim_close(optim_t *optim);

/* Tell the initial parameters: the average begins there. */
void optim_start(optim_t *optim, const float *params);

const char *optim_name(const optim_t *optim);
double optim_lr(const optim_t *optim); /* the base rate, outside of groups */

/* Multiply the base rate, and with it every group's, by [factor]. */
void optim_scale_lr(optim_t *optim, double factor);

/* Let up to [threads] threads (of the ops' team) share an update; 1 at first.
 */
void optim_team(optim_t *optim, int threads);

/* The calling thread's updates, norms and clipping take their threads from
 * [crew] (not owned), between its jobs; NULL: from the ops' team again. */
void optim_crew(crew_t *crew);

/* Elements of frozen parameters. */
size_t optim_frozen(const optim_t *optim);

/* Bytes of state and average that this rank keeps. */
size_t optim_state_bytes(const optim_t *optim);

/* Zero the gradients of frozen parameters (in this rank's ranges), so that no
 * norm sees them. */
void optim_mask(const optim_t *optim, float *grads);

/* One update of params[0 .. elems) by grads with learning rate [lr], of which a
 * group takes its own multiple; [update] is this update's number, from 1, for
 * bias correction; update 1 begins the average anew. It is not the run's step:
 * some steps make no update. Allocates nothing. */
void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t update);

/*
 * The same update in parts, for an optimizer with ranges: prepare; then the
 * vector of optim_sums, to which each rank has given the entries of its ranges
 * (the others are 0), is to be summed over the ranks that share the arena (its
 * length is the same on all; 0: this optimizer needs none); then apply for each
 * range, in any order. Norms of tensors are sums over fixed blocks, so that the
 * bits do not hang on the ranges.
 */
void optim_prepare(optim_t *optim, float *params, const float *grads,
                   int64_t update);
double *optim_sums(optim_t *optim, size_t *count);
void optim_apply(optim_t *optim, int range, float *params, const float *grads,
                 double lr, int64_t update);

/* State slots ("momentum"; "exp_avg", "exp_avg_sq"; "ema"), for checkpoints:
 * arenas laid out like the parameters, of which this rank holds its ranges. */
int optim_slots(const optim_t *optim);
const char *optim_slot_name(const optim_t *optim, int slot);
/* All of it, if it is whole: without ranges. */
float *optim_slot_data(optim_t *optim, int slot);
/* Where element [elem] of the arena is, and those up to the end of its range;
 * NULL: in no range. */
float *optim_slot_at(optim_t *optim, int slot, size_t elem);

/* The moving average of the parameters; NULL: none is kept (or not whole). */
const float *optim_average(const optim_t *optim);

/* Store this rank's ranges of the average, if there is one, into the arena
 * [params]. */
void optim_average_store(const optim_t *optim, float *params);

/* sqrt(sum of squares) of [elems] gradients in float64, in fixed blocks. Here
 * and below up to [threads] threads share the work; the bits are the same. */
double optim_norm(const float *grads, size_t elems, int threads);

/* The same in parts: the number of blocks of an arena; the square sums of those
 * of [range] (as in optim_layout_t) of the arena [grads] into their places of
 * [blocks]; and the norm that all of them make. */
size_t optim_norm_blocks(size_t elems);
void optim_norm_part(const float *grads, view_range_t range, double *blocks,
                     int threads);
double optim_norm_whole(const double *blocks, size_t count);

/* Scale [elems] gradients as optim_clip does where the norm is [norm]. */
void optim_clip_by(float *grads, size_t elems, double norm, double limit,
                   int threads);

/* Scale gradients so that their norm is at most [limit] (0: no limit); returns
 * the norm before. As torch.nn.utils.clip_grad_norm_. */
double optim_clip(float *grads, size_t elems, double limit, int threads);

/* Clamp each gradient to +-[limit] (0: no limit); what is no number stays so.
 * As torch.nn.utils.clip_grad_value_. */
void optim_clip_value(float *grads, size_t elems, double limit, int threads);

/* The length of a run, in updates. */
typedef struct optim_span {
    int64_t steps;       /* all of it */
    int64_t epoch_steps; /* an epoch, >= 1 */
} optim_span_t;

/* Schedule from `schedule`: "constant" (also of nothing) or {cosine:
 * {warmup_steps, min_lr}}, ... ERR_CONFIG with file:line:column. */
err_code_t optim_schedule_open(const tree_t *schedule, const optim_span_t *span,
                               optim_schedule_t **out, err_t *err);
void optim_schedule_close(optim_schedule_t *schedule);

/* Learning rate of update [step] (from 0) for base rate [lr]. Pure. */
double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step);

/* What a schedule that watches a metric has seen of it; zeros: nothing yet. A
 * checkpoint keeps it. */
typedef struct optim_watch {
    double best;
    int64_t seen; /* 1: there is a best */
    int64_t bad;  /* values in a row that were no better */
    int64_t rest; /* values to come that do not count as such */
    int64_t cuts; /* of the rate, so far */
} optim_watch_t;

/* The metric that the schedule watches ("loss", "accuracy"); NULL: none. */
const char *optim_schedule_metric(const optim_schedule_t *schedule);

/* The metric became [value] (NaN: no better). True: the rate is cut now. Only
 * for a schedule that has a metric. */
bool optim_schedule_watch(const optim_schedule_t *schedule, double value,
                          optim_watch_t *watch);

/* The rate [lr] of optim_schedule_lr after what was seen. Pure. */
double optim_schedule_cut(const optim_schedule_t *schedule,
                          const optim_watch_t *watch, double lr);

/* The options of the optimizer, or of the schedule, called [name]; NULL: there
 * is none of that name. */
const opt_row_t *optim_option_rows(const char *name);
const opt_row_t *optim_schedule_option_rows(const char *name);

void optim_document(str_buf_t *out);

#endif
