/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * optim: optimizers, which update the parameter arena in one pass. SGD, Adam,
 * AdamW and RMSprop have the update rules of torch.optim, so that results can
 * be compared; LARS and LAMB have those of their papers. The order of
 * computation depends only on the layout, so all ranks get the same bits.
 * place.h says how a step is made of these functions.
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
#include "optim/place.h"
#include "optim/schedule.h"

typedef struct optim optim_t;

/* One parameter in the arena; patterns of groups are matched with its name. */
typedef view_t optim_view_t;

typedef struct optim_layout {
    /* Has parameters, gradients and state. NULL: there is no state yet, and no
     * updates; for a plan. */
    dev_device_t *dev;
    const optim_view_t *views; /* in the order of the arena, not overlapping */
    int view_count;
    size_t elems; /* elements of the arena; the gaps between views stay zero */
    /* Elements that this rank updates and keeps state for: ascending ranges
     * without overlap. Each begins at a multiple of OPTIM_UNIT, and ends at one
     * or at the end of the arena. NULL: all elements. */
    const view_range_t *ranges;
    int range_count;
} optim_layout_t;

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
err_code_t optim_start(optim_t *optim, const float *params,
                       dev_stream_t *stream, err_t *err);

const char *optim_name(const optim_t *optim);
double optim_lr(const optim_t *optim); /* the base rate, without groups */

/* Multiply the base rate, and so the rate of every group, by [factor]. */
void optim_scale_lr(optim_t *optim, double factor);

/* The place of the arenas; owned by [optim]. */
optim_place_t *optim_place(optim_t *optim);

/* From now on, work of places on the host that the calling thread asks for uses
 * the threads of [crew] (not owned), which must have no other job meanwhile.
 * NULL: the threads of the ops' team again. */
void optim_crew(crew_t *crew);

/* Number of elements of frozen parameters. */
size_t optim_frozen(const optim_t *optim);

/* Bytes of state and average that this rank keeps. */
size_t optim_state_bytes(const optim_t *optim);

/* Zero this rank's gradients of frozen parameters, so norms exclude them. */
err_code_t optim_mask(const optim_t *optim, float *grads, dev_stream_t *stream,
                      err_t *err);

/* ---- updates ------------------------------------------------------------- */

/* What an update reads of the step: optim_in_bytes bytes, which the host fills
 * and copies to the device. optim_in_fill: [lr] is the learning rate, which
 * each group multiplies by its own factor. [number] is the number of the
 * update, counted from 1, for bias correction; update 1 starts the moving
 * average. It is not the number of the step, as some steps make no update. */
typedef struct optim_in optim_in_t;
size_t optim_in_bytes(const optim_t *optim);
void optim_in_fill(const optim_t *optim, double lr, int64_t number,
                   optim_in_t *out);

/* Memory of the place. */
typedef struct optim_args {
    float *params; /* arenas of optim_layout_t.elems elements */
    /* Clipped by the update; whether this changes them here or not depends on
     * the place. */
    float *grads;
    const optim_in_t *in;
    /* Whether there is an update, and the factor of the gradients. NULL: there
     * is one, and the factor is 1. */
    const optim_verdict_t *verdict;
} optim_args_t;

/* Clamp each gradient to [-limit, limit] (0: no limit) in every update, after
 * the factor of the verdict. NaN stays NaN. As torch.nn.utils.clip_grad_value_.
 * Default: 0. */
void optim_clip_value(optim_t *optim, double limit);

/* Update the parameters of all ranges. */
err_code_t optim_step(optim_t *optim, const optim_args_t *args,
                      dev_stream_t *stream, err_t *err);

/*
 * An update in parts, for an optimizer with ranges. First prepare. Then the
 * caller sums the vector of optim_sums over the ranks (it has one length on all
 * ranks; length 0: no sums are needed). Each rank has filled in the entries of
 * its ranges; other entries are 0. Then apply for each range, in any order.
 * Norms of tensors are sums over fixed blocks, so the bits do not depend on the
 * ranges.
 */
err_code_t optim_prepare(optim_t *optim, const optim_args_t *args,
                         dev_stream_t *stream, err_t *err);
double *optim_sums(optim_t *optim, size_t *count); /* memory of the place */
err_code_t optim_apply(optim_t *optim, int range, const optim_args_t *args,
                       dev_stream_t *stream, err_t *err);

/* ---- state --------------------------------------------------------------- */

/* State slots ("momentum"; "exp_avg", "exp_avg_sq"; "ema"), for checkpoints.
 * Each is an arena with the layout of the parameters, of which this rank has
 * its ranges. Memory of the place. */
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
err_code_t optim_average_store(const optim_t *optim, float *params,
                               dev_stream_t *stream, err_t *err);

/* The option table of the optimizer [name]; NULL: there is none. */
const opt_row_t *optim_option_rows(const char *name);

void optim_document(str_buf_t *out);

#endif
