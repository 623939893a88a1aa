/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* sound: are all numbers of a checkpoint finite? The last update may have
 * spoiled weights that no loss has shown yet. */
#ifndef CDDP_TRAIN_SOUND_H
#define CDDP_TRAIN_SOUND_H

#include "comm/comm.h"
#include "train/kept.h"

/* Check the tensors [kept] of step [step]: each rank of [group] checks the
 * share that it writes. ERR_DIVERGED on all ranks names the first tensor that
 * is not finite on some rank, and the newest checkpoint, that of step
 * [saved_step] (-1: none). Collective; blocks. */
err_code_t train_sound(comm_group_t *group, const train_kept_t *kept,
                       int64_t step, int64_t saved_step, err_t *err);

#endif
