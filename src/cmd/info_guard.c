/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/info_guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"

struct info_guard {
    int rank;
    double seconds, until;
    const char *phase;
    bool ends;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread;
};

/* Not exit(): its functions would wait for the thread that hangs. */
static void give_up(const info_guard_t *guard)
{
    char host[ERR_HOST_MAX] = "";

    (void)gethostname(host, sizeof host - 1);
    if (file_takes(STDERR_FILENO, 1.0))
        fprintf(stderr,
                "cddp-info: rank %d on %s hangs for %.0f s in the phase "
                "\"%s\": it ends\n",
                guard->rank, host, guard->seconds, guard->phase);
    _exit(ERR_PEER);
}

static void *guard_main(void *argument)
{
    info_guard_t *guard = argument;

    pthread_mutex_lock(&guard->lock);
    while (!guard->ends) {
        (void)thread_cond_wait(&guard->moved, &guard->lock, guard->until);
        if (!guard->ends && clock_now() >= guard->until)
            give_up(guard);
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

err_code_t info_guard_open(int rank, double seconds, info_guard_t **out,
                           err_t *err)
{
    info_guard_t *guard = NULL;
    err_code_t rc = mem_new(info_guard_t, 1, "guard", &guard, err);

    if (rc != ERR_OK)
        return rc;
    guard->rank = rank;
    guard->seconds = seconds;
    guard->until = clock_now() + seconds;
    guard->phase = "start";
    pthread_mutex_init(&guard->lock, NULL);
    thread_cond_init(&guard->moved);
    rc = thread_start("cddp-guard", guard_main, guard, &guard->thread, err);
    if (rc != ERR_OK) {
        pthread_cond_destroy(&guard->moved);
        pthread_mutex_destroy(&guard->lock);
        mem_free(guard);
        return rc;
    }
    *out = guard;
    return ERR_OK;
}

void info_guard_report(info_guard_t *guard, const char *phase)
{
    pthread_mutex_lock(&guard->lock);
    guard->phase = phase;
    guard->until = clock_now() + guard->seconds;
    pthread_mutex_unlock(&guard->lock);
}

void info_guard_close(info_guard_t *guard)
{
    if (guard == NULL)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->ends = true;
    pthread_cond_signal(&guard->moved);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->moved);
    pthread_mutex_destroy(&guard->lock);
    mem_free(guard);
}
