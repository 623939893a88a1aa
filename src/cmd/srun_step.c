/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_step.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/srun_words.h"
#include "slurm/ask.h"

/* Seconds between two looks at RUNDIR/exit.json. Shared file systems tell
 * nobody that a file has changed. */
#define LOOK_EVERY 2.0

/* Killing the tasks may not end srun, because it waits for a slurmstepd that is
 * gone. Then srun is killed after this many seconds. */
#define KILLED_PATIENCE 10.0

/* Seconds for which the rest of srun's output is read after srun has ended. */
#define REST_PATIENCE 5.0

/* ---- signals ------------------------------------------------------------- */

err_code_t srun_signals_open(srun_signals_t *signals, err_t *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *signals =
        (srun_signals_t){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (signals->fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot watch signals: %s",
                       strerror(errno));
    return ERR_OK;
}

void srun_signals_close(srun_signals_t *signals)
{
    close(signals->fd);
}

/* Read all signals that have arrived; USR1 and USR2 go to [pid] (-1: to
 * nobody). */
static void signals_take(srun_signals_t *signals, pid_t pid)
{
    struct signalfd_siginfo info;

    while (read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            signals->ends = true;
        if ((info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) && pid > 0)
            (void)kill(pid, (int)info.ssi_signo);
    }
}

void srun_signals_wait(srun_signals_t *signals, double seconds)
{
    const double end = clock_now() + seconds;

    for (double left = seconds; left > 0 && !signals->ends;
         left = end - clock_now()) {
        struct pollfd wait = {.fd = signals->fd, .events = POLLIN};

        (void)poll(&wait, 1, (int)(left * 1000) + 1);
        signals_take(signals, -1);
    }
}

/* ---- a step that runs ---------------------------------------------------- */

/* A step, and what is known of it so far. */
typedef struct running {
    const srun_step_t *step;
    srun_result_t *result;
    pid_t pid;
    int out;   /* end of the pipe of srun's standard error; -1: closed */
    bool gone; /* srun has ended */
    /* The record that was there before. Job ids repeat in a cluster that was
     * set up anew, so a record of equal ids may be old. */
    char before[32];
    double recorded_at, killed_at; /* clock instants; NAN: not yet */
    srun_words_t words;
} running_t;

static int srun_start(running_t *run)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    /* The cast removes const: posix_spawn changes no argument, its prototype is
     * historical. */
    rc = posix_spawnp(&run->pid, run->step->args[0], &actions, &attr,
                      (char *const *)(uintptr_t)run->step->args, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(ends[1]);
    if (rc != 0)
        close(ends[0]);
    else
        run->out = ends[0];
    return rc;
}

/* Read a piece of srun's standard error, keep its words, and pass it on. If it
 * cannot be passed on (a full disk), it is lost: the run is worth more. */
static void output_take(running_t *run)
{
    char piece[4096];
    const ssize_t got = read(run->out, piece, sizeof piece);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        close(run->out);
        run->out = -1;
        return;
    }
    srun_words_take(&run->words, piece, (size_t)got);
    for (ssize_t done = 0, wrote; done < got; done += wrote) {
        wrote = write(STDERR_FILENO, piece + done, (size_t)(got - done));
        if (wrote < 0 && errno == EINTR)
            wrote = 0;
        else if (wrote <= 0)
            return;
    }
}

/* Return whether the record is of this step. */
static bool record_is_ours(const running_t *run,
                           const slurm_exit_found_t *record)
{
    const slurm_job_t *job = run->step->job;

    return strcmp(record->job, job->id) == 0 &&
           record->restarts == job->restarts &&
           record->attempt == job->attempt &&
           strcmp(record->time, run->before) != 0;
}

/* Read the record, even if it was read before: another rank that knows the
 * cause may have written it again. */
static void record_look(running_t *run)
{
    srun_result_t *result = run->result;
    slurm_exit_found_t found;

    if (slurm_exit_read(run->step->run_dir, &found, NULL) != ERR_OK ||
        !record_is_ours(run, &found))
        return;
    result->record = found;
    if (!result->recorded)
        run->recorded_at = clock_now();
    result->recorded = true;
}

/* End a step that outlives its record: ask Slurm to kill its tasks, and if that
 * does not end srun either, kill srun. */
static void outlive_check(running_t *run)
{
    const char *const args[] = {"scancel", "--signal=KILL",
                                run->result->record.step_id, NULL};
    char said[256];
    err_t err = ERR_INIT;

    if (isnan(run->recorded_at) || run->gone)
        return;
    if (isnan(run->killed_at) &&
        clock_now() - run->recorded_at >= SRUN_OUTLIVES) {
        run->killed_at = clock_now();
        log_warn("srun",
                 "step %s still runs %g s after one of its ranks has recorded "
                 "its end: it is killed",
                 run->result->record.step_id, SRUN_OUTLIVES);
        if (slurm_ask(args, said, sizeof said, &err) != ERR_OK)
            log_warn("srun", "%s", err.text);
    } else if (!isnan(run->killed_at) &&
               clock_now() - run->killed_at >= KILLED_PATIENCE) {
        log_warn("srun", "srun still runs: it is killed");
        run->killed_at = clock_now();
        (void)kill(run->pid, SIGKILL);
    }
}

/* Has srun ended? */
static void child_look(running_t *run)
{
    int status = 0;

    if (run->gone || waitpid(run->pid, &status, WNOHANG) != run->pid)
        return;
    run->gone = true;
    run->result->status =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Wait for output, a signal, or the next look at the record. */
static void events_wait(running_t *run)
{
    struct pollfd wait[2] = {{.fd = run->step->signals->fd, .events = POLLIN},
                             {.fd = run->out, .events = POLLIN}};

    (void)poll(wait, run->out < 0 ? 1 : 2, (int)(LOOK_EVERY * 1000));
    if (run->out >= 0 && wait[1].revents != 0)
        output_take(run);
    signals_take(run->step->signals, run->gone ? -1 : run->pid);
}

static void step_wait(running_t *run)
{
    double rest_until = INFINITY, looked = clock_now();

    while (!run->gone || (run->out >= 0 && clock_now() < rest_until)) {
        events_wait(run);
        child_look(run);
        if (run->gone && isinf(rest_until))
            rest_until = clock_now() + REST_PATIENCE;
        if (clock_now() - looked >= LOOK_EVERY) {
            looked = clock_now();
            record_look(run);
            outlive_check(run);
        }
    }
    record_look(run);
}

err_code_t srun_step_run(const srun_step_t *step, srun_result_t *out,
                         err_t *err)
{
    slurm_exit_found_t before;
    running_t run = {.step = step,
                     .result = out,
                     .pid = -1,
                     .out = -1,
                     .recorded_at = NAN,
                     .killed_at = NAN};
    int rc;

    *out = (srun_result_t){0};
    if (slurm_exit_read(step->run_dir, &before, NULL) == ERR_OK)
        snprintf(run.before, sizeof run.before, "%s", before.time);
    rc = srun_start(&run);
    if (rc != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot run %s: %s", step->args[0],
                       strerror(rc));
    step_wait(&run);
    if (run.out >= 0)
        close(run.out);
    srun_words_end(&run.words, out->words, sizeof out->words);
    memcpy(out->said, run.words.said, sizeof out->said);
    out->job_gone = run.words.job_gone && !out->recorded;
    out->cancelled = run.words.cancelled;
    out->unlaunched =
        (run.words.unlaunched || run.words.job_gone) && !out->recorded;
    /* If no node launches its tasks, srun ends with 0. */
    if (out->unlaunched && out->status == 0)
        out->status = ERR_UNAVAILABLE;
    snprintf(out->unlaunched_host, sizeof out->unlaunched_host, "%s",
             out->unlaunched ? run.words.host : "");
    out->busy = out->unlaunched && run.words.busy;
    return ERR_OK;
}
