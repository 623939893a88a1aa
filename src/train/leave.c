/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/leave.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/lives.h"

void train_leave_open(train_state_t *run)
{
    err_t err = ERR_INIT;

    run->leave.deadline = train_deadline(run->config->checkpoint.reserve);
    if (run->world.rank == 0 && run->env->job->id[0] != '\0' &&
        slurm_watch_open(run->env->job, &run->leave.watch, &err) != ERR_OK)
        log_warn("train", "%s; the end of the job is unknown", err.text);
}

void train_leave_past(train_state_t *run)
{
    const train_lives_past_t past = train_lives_past(run);

    train_deadline_save(&run->leave.deadline, past.save_s);
    run->leave.deadline.warned = past.kill_wait;
}

void train_leave_close(train_state_t *run)
{
    slurm_watch_close(run->leave.watch);
    run->leave.watch = NULL;
}

/* Take the controller's answer, if it is there and was not taken yet. */
static void limits_take(train_leave_t *leave)
{
    slurm_limits_t limits;

    if (leave->known || !slurm_watch_limits(leave->watch, &limits))
        return;
    leave->known = true;
    train_deadline_limits(&leave->deadline, &limits, clock_now());
    if (isfinite(limits.end))
        log_debug("train", "Slurm ends the job in %.0f s",
                  limits.end - clock_now());
}

bool train_leave_late(train_state_t *run)
{
    const bool started =
        run->life.opened && run->progress.step > run->life.first_step;

    double now, rest = 0;

    if (run->leave.watch == NULL)
        return false;
    limits_take(&run->leave);
    now = clock_now();
    if (train_saver_busy(run->saving.saver))
        rest = train_deadline_rest(&run->leave.deadline,
                                   now - run->saving.began, run->saving.local);
    return now >= train_deadline_instant(&run->leave.deadline, started) - rest;
}

/* Return [signal] if there is one; otherwise whether it is time to leave. */
static slurm_signal_t look(train_state_t *run, slurm_signal_t signal)
{
    if (signal != SLURM_SIGNAL_NONE)
        return signal;
    return train_leave_late(run) ? SLURM_SIGNAL_TIME : SLURM_SIGNAL_NONE;
}

slurm_signal_t train_leave_asked(train_state_t *run)
{
    return look(run, run->env->signal());
}

err_code_t train_leave_start(train_state_t *run, err_code_t rc, err_t *err)
{
    slurm_signal_t asked = SLURM_SIGNAL_NONE;

    if (rc == ERR_OK)
        asked =
            look(run, run->env->signal_start != NULL ? run->env->signal_start()
                                                     : SLURM_SIGNAL_NONE);
    if (asked == SLURM_SIGNAL_NONE)
        return rc;
    return err_set(err, ERR_REQUEUE,
                   "%s (%s) before the first step of this start, so there is "
                   "no new checkpoint; start it again to go on",
                   asked == SLURM_SIGNAL_TIME ? "out of time" : "asked to stop",
                   slurm_signal_name(asked));
}

/* A run that leaves may first wait for the save in progress. */
static bool saves_twice(const train_state_t *run)
{
    return run->saving.behind;
}

/* Warn, and add to the history that this was said. */
static void kill_wait_say(const train_state_t *run, double seconds)
{
    obs_lives_line_t line =
        obs_lives_line(OBS_LIVES_KILL_WAIT, run->progress.step);

    log_warn("train",
             "a checkpoint took %.1f s%s, but Slurm kills a job "
             "%.0f s (KillWait) after SIGTERM: after scancel, requeue or "
             "preemption the run may resume from the checkpoint before; "
             "a longer KillWait or GraceTime, or a faster file system, "
             "would mend that",
             seconds,
             saves_twice(run) ? ", and a run that leaves may wait for two "
                                "(checkpoint.async)"
                              : "",
             run->leave.deadline.limits.kill_wait);
    line.seconds = seconds;
    train_lives_add(run, &line);
}

void train_leave_saved(train_state_t *run, double seconds)
{
    train_deadline_save(&run->leave.deadline, seconds);
    limits_take(&run->leave);
    if (run->world.rank == 0 &&
        train_deadline_kill_wait(&run->leave.deadline,
                                 saves_twice(run) ? 2 * seconds : seconds))
        kill_wait_say(run, seconds);
}
