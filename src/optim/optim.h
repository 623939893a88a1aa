/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * optim: optimizers as one flat pass over the parameter arena, and
 * learning-rate schedules. Update rules are PyTorch's (torch.optim.SGD,
 * .AdamW), so that the recorded losses can be matched.
 */
#ifndef CDDP_OPTIM_OPTIM_H
#define CDDP_OPTIM_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/tree.h"

typedef struct optim optim_t;
typedef struct optim_schedule optim_schedule_t;

/* Build from the run file's `optimizer` value: "sgd", or {adamw: {lr: ...}}.
 * State for [elems] parameters is allocated zeroed. */
err_code_t optim_open(const tree_t *optimizer, size_t elems, optim_t **out,
                      err_t *err);
void optim_close(optim_t *optim);

const char *optim_name(const optim_t *optim);
double optim_lr(const optim_t *optim); /* the configured (base) rate */

/* One update of params[0 .. elems) by grads with learning rate [lr]; [step]
 * counts updates from 1 (bias correction). Allocates nothing. */
void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t step);

/* State slots ("momentum"; "exp_avg", "exp_avg_sq"): arenas laid out like the
 * parameters, for checkpoints. */
int optim_slots(const optim_t *optim);
const char *optim_slot_name(const optim_t *optim, int slot);
float *optim_slot_data(optim_t *optim, int slot);

/* sqrt(sum of squares) of [elems] gradients in float64, in fixed blocks. */
double optim_norm(const float *grads, size_t elems);

/* Scale gradients so that their norm is at most [limit] (0: no limit); returns
 * the norm before. As torch.nn.utils.clip_grad_norm_. */
double optim_clip(float *grads, size_t elems, double limit);

/* Schedule from `schedule`: "constant" or {cosine: {warmup_steps, min_lr}};
 * [steps] is the total number of updates of the run. */
err_code_t optim_schedule_open(const tree_t *schedule, int64_t steps,
                               optim_schedule_t **out, err_t *err);
void optim_schedule_close(optim_schedule_t *schedule);

/* Learning rate of update [step] (from 0) for base rate [lr]. Pure. */
double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step);

void optim_document(str_buf_t *out);

#endif
