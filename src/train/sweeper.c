/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/sweeper.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "hdf5io/checkpoint_sweep.h"

struct train_sweeper {
    char *directory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* one of these has changed, under lock: */
    bool asked, works, stop, ended;
};

static bool is_stopped(void *context)
{
    train_sweeper_t *sweeper = context;
    bool stop;

    pthread_mutex_lock(&sweeper->lock);
    stop = sweeper->stop;
    pthread_mutex_unlock(&sweeper->lock);
    return stop;
}

static void *sweeper_main(void *argument)
{
    train_sweeper_t *sweeper = argument;
    const hdf5io_sweep_t sweep = {.directory = sweeper->directory,
                                  .stop = is_stopped,
                                  .context = sweeper};

    log_rank_set(0);
    thread_stand_back();
    pthread_mutex_lock(&sweeper->lock);
    while (!sweeper->stop) {
        if (!sweeper->asked) {
            thread_cond_wait(&sweeper->changed, &sweeper->lock, -1);
            continue;
        }
        sweeper->asked = false;
        sweeper->works = true;
        pthread_mutex_unlock(&sweeper->lock);
        hdf5io_sweep(&hdf5io_io_system, &sweep);
        pthread_mutex_lock(&sweeper->lock);
        sweeper->works = false;
        pthread_cond_broadcast(&sweeper->changed);
    }
    sweeper->ended = true;
    pthread_cond_broadcast(&sweeper->changed);
    pthread_mutex_unlock(&sweeper->lock);
    return NULL;
}

static void sweeper_free(train_sweeper_t *sweeper)
{
    pthread_cond_destroy(&sweeper->changed);
    pthread_mutex_destroy(&sweeper->lock);
    free(sweeper->directory);
    mem_free(sweeper);
}

err_code_t train_sweeper_open(const char *directory, train_sweeper_t **out,
                              err_t *err)
{
    train_sweeper_t *sweeper = NULL;
    err_code_t rc = mem_new(train_sweeper_t, 1, "a sweeper", &sweeper, err);

    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&sweeper->lock, NULL);
    thread_cond_init(&sweeper->changed);
    sweeper->directory = str_dup(directory);
    rc = thread_start("cddp-sweeper", sweeper_main, sweeper, &sweeper->thread,
                      err);
    if (rc == ERR_OK)
        *out = sweeper;
    else
        sweeper_free(sweeper);
    return rc;
}

void train_sweeper_ask(train_sweeper_t *sweeper)
{
    if (sweeper == NULL)
        return;
    pthread_mutex_lock(&sweeper->lock);
    sweeper->asked = true;
    pthread_cond_broadcast(&sweeper->changed);
    pthread_mutex_unlock(&sweeper->lock);
}

bool train_sweeper_wait(train_sweeper_t *sweeper, double seconds)
{
    const double until = clock_now() + seconds;
    bool in_time = true;

    if (sweeper == NULL)
        return true;
    pthread_mutex_lock(&sweeper->lock);
    while (in_time && (sweeper->asked || sweeper->works))
        in_time = thread_cond_wait(&sweeper->changed, &sweeper->lock, until);
    pthread_mutex_unlock(&sweeper->lock);
    return in_time;
}

void train_sweeper_close(train_sweeper_t *sweeper)
{
    const double until = clock_now() + TRAIN_SWEEPER_STOP;
    bool in_time = true;

    if (sweeper == NULL)
        return;
    pthread_mutex_lock(&sweeper->lock);
    sweeper->stop = true;
    pthread_cond_broadcast(&sweeper->changed);
    while (in_time && !sweeper->ended)
        in_time = thread_cond_wait(&sweeper->changed, &sweeper->lock, until);
    pthread_mutex_unlock(&sweeper->lock);
    if (!in_time) {
        pthread_detach(sweeper->thread);
        return;
    }
    pthread_join(sweeper->thread, NULL);
    sweeper_free(sweeper);
}
