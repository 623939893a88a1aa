/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* trouble: does a step whose numbers are finite show that training diverges?
 */
#ifndef CDDP_TRAIN_TROUBLE_H
#define CDDP_TRAIN_TROUBLE_H

#include "train/run_priv.h"

/* Judge the step that was just made. ERR_DIVERGED if its [loss] is a spike, or
 * if the [norm] of its gradients is so large that the optimizer's state would
 * not be finite, which no rollback could mend later. Otherwise the loss is
 * remembered, if fault.spike is set. [loss] is NaN for a step without targets.
 * Both numbers are sums over ranks, so all ranks get one outcome. Local;
 * allocates nothing. */
err_code_t train_trouble_find(train_state_t *run, double loss, double norm,
                              err_t *err);

#endif
