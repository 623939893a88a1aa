/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

#define LONG_WAIT 86400.0 /* seconds of one poll, whose argument is an int */

struct slurm_watch {
    const slurm_job_t *job;
    pthread_t thread;
    int cancel; /* eventfd; readable: the thread ends */
    char **env; /* a copy, as other threads may change the environment */
    slurm_limits_t limits;
    _Atomic bool known; /* [limits] will not change any more */
};

/* Copy the environment of this process: pointers, then strings, in one block.
 */
static err_code_t env_copy(char ***out, err_t *err)
{
    size_t count = 0, bytes = 0;
    char **copy = NULL, *at;
    void *block;
    err_code_t rc;

    for (; environ[count] != NULL; count++)
        bytes += strlen(environ[count]) + 1;
    rc = mem_alloc((count + 1) * sizeof *copy + bytes, "environment", &block,
                   err);
    if (rc != ERR_OK)
        return rc;
    copy = block;
    at = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(environ[i]) + 1;

        copy[i] = memcpy(at, environ[i], length);
        at += length;
    }
    copy[count] = NULL;
    *out = copy;
    return ERR_OK;
}

/* Wait for [seconds]. True: the watch is being closed. */
static bool cancelled(const slurm_watch_t *watch, double seconds)
{
    struct pollfd wait = {.fd = watch->cancel, .events = POLLIN};
    const double end = clock_now() + seconds;
    double left = seconds;

    while (left > 0) {
        if (poll(&wait, 1, (int)(fmin(left, LONG_WAIT) * 1000) + 1) > 0)
            return true;
        left = end - clock_now();
    }
    return poll(&wait, 1, 0) > 0;
}

/* If the run still starts up shortly before the end of the job, let it give up:
 * it may wait at a place that looks at no clock. */
static void start_watch(const slurm_watch_t *watch)
{
    if (isfinite(watch->limits.end) &&
        !cancelled(watch, watch->limits.end - SLURM_WATCH_MARGIN - clock_now()))
        slurm_signal_late();
}

static void *watch_main(void *argument)
{
    slurm_watch_t *watch = argument;
    const slurm_command_t how = {.cancel = watch->cancel, .env = watch->env};
    err_t err = ERR_INIT;
    bool said = false;

    while (slurm_limits_ask(watch->job, &how, &watch->limits, &err) != ERR_OK) {
        if (!said && !cancelled(watch, 0))
            log_warn("train",
                     "%s; the end of the job is unknown: only a signal "
                     "(sbatch --signal=USR1@120) makes the run leave in time",
                     err.text);
        said = true;
        if (cancelled(watch, SLURM_WATCH_EVERY))
            return NULL;
    }
    atomic_store_explicit(&watch->known, true, memory_order_release);
    start_watch(watch);
    return NULL;
}

err_code_t slurm_watch_open(const slurm_job_t *job, slurm_watch_t **out,
                            err_t *err)
{
    slurm_watch_t *watch = NULL;
    err_code_t rc = mem_new(slurm_watch_t, 1, "watch", &watch, err);

    if (rc != ERR_OK)
        return rc;
    watch->job = job;
    watch->cancel = eventfd(0, EFD_CLOEXEC);
    if (watch->cancel < 0)
        rc = err_set(err, ERR_UNAVAILABLE, "cannot watch the time: %s",
                     strerror(errno));
    if (rc == ERR_OK)
        rc = env_copy(&watch->env, err);
    if (rc == ERR_OK)
        rc = thread_start("cddp-watch", watch_main, watch, &watch->thread, err);
    if (rc == ERR_OK) {
        *out = watch;
        return ERR_OK;
    }
    if (watch->cancel >= 0)
        close(watch->cancel);
    mem_free(watch->env);
    mem_free(watch);
    return rc;
}

bool slurm_watch_limits(const slurm_watch_t *watch, slurm_limits_t *out)
{
    if (watch == NULL ||
        !atomic_load_explicit(&watch->known, memory_order_acquire))
        return false;
    *out = watch->limits;
    return true;
}

void slurm_watch_close(slurm_watch_t *watch)
{
    const uint64_t one = 1;

    if (watch == NULL)
        return;
    while (write(watch->cancel, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(watch->thread, NULL);
    close(watch->cancel);
    mem_free(watch->env);
    mem_free(watch);
}
