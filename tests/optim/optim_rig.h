/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* optim_rig: calls of an optimizer on the host's place, each of which runs at
 * once, with plain arrays. */
#ifndef TESTS_OPTIM_OPTIM_RIG_H
#define TESTS_OPTIM_OPTIM_RIG_H

#include "optim/optim.h"

/* The device "cpu" and a stream of it, which the first call opens. */
dev_device_t *optim_rig_dev(void);
dev_stream_t *optim_rig_stream(void);

void optim_rig_start(optim_t *optim, const float *params);
void optim_rig_mask(const optim_t *optim, float *grads);
void optim_rig_store(const optim_t *optim, float *params);

/* Update number [number]; gradients are not clipped. */
void optim_rig_step(optim_t *optim, float *params, const float *grads,
                    double lr, int64_t number);

double optim_rig_norm(const float *grads, size_t elems, int threads);

/* Whether there is an update, if the gradients have [norm] and targets
 * count. */
optim_verdict_t optim_rig_verdict(double norm, double limit);

/* Clip [grads] as an update does: to the norm [limit], then each to [most] (0:
 * no limit). Returns the norm before. They stay as they are if there is no
 * update. */
double optim_rig_clip(float *grads, size_t elems, double limit, double most,
                      int threads);

#endif
