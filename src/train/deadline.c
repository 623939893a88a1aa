/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/deadline.h"

#include <math.h>

/* STEPS: see train_deadline_instant. SAVES: a checkpoint may be slower than
 * those that were measured, as these are few. */
#define STEPS 2.0
#define SAVES 1.5

train_deadline_t train_deadline(double reserve)
{
    return (train_deadline_t){.limits = slurm_limits_none(),
                              .reserve = reserve};
}

void train_deadline_limits(train_deadline_t *deadline,
                           const slurm_limits_t *limits, double now)
{
    deadline->limits = *limits;
    deadline->reserve =
        fmin(deadline->reserve, fmax(0.0, (limits->end - now) / 2));
}

void train_deadline_step(train_deadline_t *deadline, double seconds)
{
    deadline->step_s = fmax(deadline->step_s, seconds);
}

void train_deadline_save(train_deadline_t *deadline, double seconds)
{
    deadline->save_s = fmax(deadline->save_s, seconds);
}

void train_deadline_local(train_deadline_t *deadline, double seconds)
{
    deadline->local_s = fmax(deadline->local_s, seconds);
}

/* Seconds to keep for a save. */
static double save_room(const train_deadline_t *deadline)
{
    return deadline->save_s > 0 ? SAVES * deadline->save_s : deadline->reserve;
}

double train_deadline_instant(const train_deadline_t *deadline, bool started)
{
    double needed = TRAIN_DEADLINE_MARGIN;

    if (started)
        needed += STEPS * deadline->step_s + save_room(deadline);
    return deadline->limits.end - needed;
}

double train_deadline_rest(const train_deadline_t *deadline, double since,
                           bool local)
{
    const double room = local && deadline->local_s > 0
                            ? SAVES * deadline->local_s
                            : save_room(deadline);

    return fmax(0.0, room - since);
}

double train_deadline_spare(const train_deadline_t *deadline, double seconds,
                            bool saves, double now)
{
    const double needed =
        TRAIN_DEADLINE_MARGIN + (saves ? save_room(deadline) : 0.0);

    return fmax(0.0, fmin(seconds, deadline->limits.end - now - needed));
}

train_deadline_t train_deadline_after_term(const train_deadline_t *deadline,
                                           double now)
{
    train_deadline_t sooner = *deadline;

    /* fmin leaves a NAN out. */
    sooner.limits.end =
        fmin(deadline->limits.end, now + deadline->limits.kill_wait);
    return sooner;
}

bool train_deadline_kill_wait(train_deadline_t *deadline, double seconds)
{
    const double kill_wait = deadline->limits.kill_wait;
    const bool shorter =
        !isnan(kill_wait) && !deadline->warned && kill_wait < SAVES * seconds;

    if (shorter)
        deadline->warned = true;
    return shorter;
}
