/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/thread.h"

#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* How long to rest after a wait that has ended too early. */
#define EARLY_MS 10

err_code_t thread_start(const char *name, thread_main_t main, void *argument,
                        pthread_t *out, err_t *err)
{
    /* Signals of faults in the thread itself stay unblocked, for debuggers and
     * sanitizers. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, old;
    pthread_t thread;
    char kept[16];
    size_t i;
    int status;

    sigfillset(&all);
    for (i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(&thread, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0)
        return err_set(err, ERR_MEMORY,
                       "cannot start thread %s: %s; raise the limit on "
                       "processes (ulimit -u) or on memory",
                       name, strerror(status));
    snprintf(kept, sizeof kept, "%s", name);
    pthread_setname_np(thread, kept);
    *out = thread;
    return ERR_OK;
}

void thread_stand_back(void)
{
    const struct sched_param none = {.sched_priority = 0};

    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

/* The first version of the kernel's struct sched_attr, which glibc does not
 * define. */
typedef struct thread_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period; /* ns */
} thread_attr_t;

/* In nanoseconds; the kernel's default is about 3 ms. */
#define PROMPT_SLICE 200000

void thread_prompt(void)
{
    thread_attr_t attr = {0};

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) != 0 ||
        attr.policy != SCHED_OTHER)
        return;
    attr.slice = PROMPT_SLICE;
    /* If the kernel refuses, nothing changes. */
    (void)!syscall(SYS_sched_setattr, 0, &attr, 0);
}

int thread_cores(void)
{
    cpu_set_t *set;
    size_t bytes;
    int room, count = 0;

    /* The kernel refuses (EINVAL) a set that is smaller than its own. */
    for (room = 1024; count == 0 && room <= 1 << 20; room *= 4) {
        set = CPU_ALLOC((size_t)room);
        if (set == NULL)
            break;
        bytes = CPU_ALLOC_SIZE((size_t)room);
        if (sched_getaffinity(0, bytes, set) == 0)
            count = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
    }
    return count > 0 ? count : 1;
}

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                      double instant)
{
    struct timespec until;
    double whole;

    /* An instant above the limit might not fit time_t. */
    if (instant < 0 || !(instant < 1e15))
        return pthread_cond_wait(cond, lock) == 0;
    until.tv_nsec = (long)(modf(instant, &whole) * 1e9);
    until.tv_sec = (time_t)whole;
    if (pthread_cond_timedwait(cond, lock, &until) == 0)
        return true;
    /* A tool that changes the time of a program, such as libfaketime, may leave
     * the clock of this wait unchanged. So only clock_now decides. */
    if (clock_now() >= instant)
        return false;
    /* The caller waits again at once. So leave the core to other threads for a
     * while. */
    pthread_mutex_unlock(lock);
    (void)poll(NULL, 0, EARLY_MS);
    pthread_mutex_lock(lock);
    return true;
}

/* ---- a call with a limit ------------------------------------------------- */

/* Shared by the thread and the one that waits for it. The last of them frees
 * it. */
typedef struct thread_job {
    thread_main_t main;
    void *argument;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left; /* under lock: main has returned; nobody waits */
} thread_job_t;

static void job_free(thread_job_t *job)
{
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    mem_free(job);
}

static void *job_main(void *argument)
{
    thread_job_t *job = argument;
    bool left;

    (void)job->main(job->argument);
    pthread_mutex_lock(&job->lock);
    job->done = true;
    left = job->left;
    pthread_cond_signal(&job->changed);
    pthread_mutex_unlock(&job->lock);
    if (left)
        job_free(job);
    return NULL;
}

/* Wait for the job until [instant]. Returns whether it is done. */
static bool job_await(thread_job_t *job, pthread_t thread, double instant)
{
    bool done;

    pthread_mutex_lock(&job->lock);
    while (!job->done && thread_cond_wait(&job->changed, &job->lock, instant))
        continue;
    done = job->done;
    job->left = !done;
    pthread_mutex_unlock(&job->lock);
    if (done) {
        pthread_join(thread, NULL);
        job_free(job);
    } else {
        pthread_detach(thread);
    }
    return done;
}

err_code_t thread_call(const char *name, thread_main_t main, void *argument,
                       double seconds, bool *in_time, err_t *err)
{
    const double instant = clock_now() + seconds;
    thread_job_t *job = NULL;
    pthread_t thread;
    err_code_t rc = mem_new(thread_job_t, 1, "a thread", &job, err);

    if (rc != ERR_OK)
        return rc;
    job->main = main;
    job->argument = argument;
    pthread_mutex_init(&job->lock, NULL);
    thread_cond_init(&job->changed);
    rc = thread_start(name, job_main, job, &thread, err);
    if (rc == ERR_OK)
        *in_time = job_await(job, thread, instant);
    else
        job_free(job);
    return rc;
}
