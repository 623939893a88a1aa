/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/clock.h"
#include "train/leave.h"
#include "train/save_failed.h"
#include "train/step.h"
#include "train/straggler.h"

void train_flags_fill(train_state_t *run, double *flags)
{
    const opt_every_t *every = &run->config->checkpoint.every;
    slurm_signal_t asked = train_leave_asked(run);
    const double now = clock_now();

    flags[TRAIN_TAIL_REQUEST] =
        asked == SLURM_SIGNAL_CHECKPOINT || asked == SLURM_SIGNAL_TIME ? 1.0
                                                                       : 0.0;
    flags[TRAIN_TAIL_TERM] = asked == SLURM_SIGNAL_TERM ? 1.0 : 0.0;
    if (run->world.rank != 0)
        return;
    /* If this rank's own storage does not answer, the others have ended. */
    if (train_saver_ended(run->saving.saver) ||
        train_saver_failed(run->saving.saver))
        flags[TRAIN_TAIL_DUE] += TRAIN_DUE_JOIN;
    if (every->unit == OPT_TIME && now >= train_save_instant(run) &&
        (run->saving.local || !train_saver_busy(run->saving.saver)))
        flags[TRAIN_TAIL_DUE] += TRAIN_DUE_SAVE;
    if (train_straggler_due(&run->straggler, now))
        flags[TRAIN_TAIL_DUE] += TRAIN_DUE_LOOK;
}
