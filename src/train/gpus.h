/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * gpus: what the ranks of a run tell each other about their GPUs, and which
 * GPUs do not go together. How Slurm binds tasks to GPUs differs from site to
 * site, so the GPUs themselves are compared, not the variables that hide them.
 */
#ifndef CDDP_TRAIN_GPUS_H
#define CDDP_TRAIN_GPUS_H

#include "comm/comm.h"
#include "train/device.h"

/*
 * Compare the GPUs on which the ranks of [group] compute. ERR_CONFIG, the same
 * on all ranks: two ranks have one GPU (unless train.share_gpu), or, with
 * train.reproducible, GPUs of two models or with two versions of driver or
 * libraries. Otherwise rank 0 says once that models differ, or that each rank
 * sees its own GPU only. Collective.
 */
err_code_t train_gpus_compare(const train_config_t *config, comm_group_t *group,
                              const train_device_t *device, err_t *err);

#endif
