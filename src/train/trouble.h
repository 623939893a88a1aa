/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* trouble: does a step whose numbers are finite show that training diverges?
 */
#ifndef CDDP_TRAIN_TROUBLE_H
#define CDDP_TRAIN_TROUBLE_H

#include "train/run_priv.h"

/* ERR_DIVERGED if [loss] of the step that was just made is a spike, or if
 * [norm] of its gradients is too large to go back from later. Otherwise the
 * loss is remembered, if fault.spike is set. [loss] is NaN for a step without
 * targets. Both are sums over ranks, so all ranks get one outcome. Local;
 * allocates nothing. */
err_code_t train_trouble_find(train_state_t *run, double loss, double norm,
                              err_t *err);

#endif
