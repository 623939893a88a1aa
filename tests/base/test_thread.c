/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/thread.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"

typedef struct shared {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool ready;
    char name[16];
    sigset_t mask;
} shared_t;

static void shared_open(shared_t *shared)
{
    memset(shared, 0, sizeof *shared);
    pthread_mutex_init(&shared->lock, NULL);
    thread_cond_init(&shared->cond);
}

static void shared_close(shared_t *shared)
{
    pthread_cond_destroy(&shared->cond);
    pthread_mutex_destroy(&shared->lock);
}

static void *look_around(void *argument)
{
    shared_t *shared = argument;

    pthread_mutex_lock(&shared->lock);
    while (!shared->ready)
        thread_cond_wait(&shared->cond, &shared->lock, -1);
    pthread_mutex_unlock(&shared->lock);
    pthread_getname_np(pthread_self(), shared->name, sizeof shared->name);
    pthread_sigmask(SIG_SETMASK, NULL, &shared->mask);
    return shared;
}

Test(thread, has_its_name_and_no_signals)
{
    err_t err = ERR_INIT;
    sigset_t before, after;
    pthread_t thread;
    shared_t shared;
    void *result;

    shared_open(&shared);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(thread_start("a-name-of-more-than-15", look_around, &shared,
                              &thread, &err),
                 ERR_OK);
    pthread_mutex_lock(&shared.lock);
    shared.ready = true;
    pthread_cond_signal(&shared.cond);
    pthread_mutex_unlock(&shared.lock);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cr_assert_eq(result, &shared);
    cr_assert_str_eq(shared.name, "a-name-of-more-");
    cr_assert(sigismember(&shared.mask, SIGTERM));
    cr_assert(sigismember(&shared.mask, SIGUSR1));
    cr_assert_not(sigismember(&shared.mask, SIGSEGV));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    cr_assert_eq(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    shared_close(&shared);
}

Test(thread, waiting_ends_at_the_instant)
{
    double begin = clock_now(), passed;
    shared_t shared;

    shared_open(&shared);
    pthread_mutex_lock(&shared.lock);
    while (thread_cond_wait(&shared.cond, &shared.lock, begin + 0.05)) {
        /* spurious wake-up */
    }
    pthread_mutex_unlock(&shared.lock);
    passed = clock_now() - begin;
    cr_assert(passed >= 0.05 && passed < 5, "%g s", passed);
    shared_close(&shared);
}

static void *wake(void *argument)
{
    shared_t *shared = argument;

    pthread_mutex_lock(&shared->lock);
    shared->ready = true;
    pthread_cond_signal(&shared->cond);
    pthread_mutex_unlock(&shared->lock);
    return NULL;
}

Test(thread, waiting_ends_when_signalled)
{
    const double instants[] = {-1, 1e300}; /* both mean: wait for ever */
    err_t err = ERR_INIT;
    pthread_t thread;
    shared_t shared;
    size_t i;

    for (i = 0; i < 2; i++) {
        shared_open(&shared);
        pthread_mutex_lock(&shared.lock);
        cr_assert_eq(thread_start("waker", wake, &shared, &thread, &err),
                     ERR_OK);
        while (!shared.ready)
            cr_assert(
                thread_cond_wait(&shared.cond, &shared.lock, instants[i]));
        pthread_mutex_unlock(&shared.lock);
        pthread_join(thread, NULL);
        shared_close(&shared);
    }
}

/* ---- a call with a limit ------------------------------------------------- */

/* The thread waits until [go]; then it says that it has [gone] on. */
typedef struct call {
    sem_t go, gone;
} call_t;

static void *call_main(void *argument)
{
    call_t *call = argument;

    while (sem_wait(&call->go) != 0)
        continue;
    sem_post(&call->gone);
    return NULL;
}

Test(thread, a_call_that_returns_is_in_time)
{
    bool in_time = false;
    call_t call;
    err_t err = ERR_INIT;

    sem_init(&call.go, 0, 1);
    sem_init(&call.gone, 0, 0);
    cr_assert_eq(thread_call("call", call_main, &call, 3600, &in_time, &err),
                 ERR_OK);
    cr_expect(in_time);
    cr_expect_eq(sem_trywait(&call.gone), 0);
}

/* The thread goes on after its caller, and frees what both have used: the leak
 * sanitizer would find it. */
Test(thread, a_call_that_hangs_is_left)
{
    static call_t call;
    bool in_time = true;
    err_t err = ERR_INIT;

    sem_init(&call.go, 0, 0);
    sem_init(&call.gone, 0, 0);
    cr_assert_eq(thread_call("call", call_main, &call, 0.01, &in_time, &err),
                 ERR_OK);
    cr_expect(!in_time);
    sem_post(&call.go);
    while (sem_wait(&call.gone) != 0)
        continue;
}

Test(thread, cores_follow_the_affinity_mask)
{
    cpu_set_t set;
    int first;

    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    cr_assert_eq(thread_cores(), CPU_COUNT(&set));
    for (first = 0; !CPU_ISSET(first, &set); first++) {
    }
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof set, &set), 0);
    cr_assert_eq(thread_cores(), 1);
}

/* The kernel's time slice of this thread in ns; 0: unknown. */
static uint64_t slice(void)
{
    uint64_t attr[6] = {0}; /* struct sched_attr: size, policy, ...; the slice
                               is in bytes 24 to 31 */

    cr_assert_eq(syscall(SYS_sched_getattr, 0, attr, sizeof attr, 0), 0);
    return attr[3];
}

static void *prompt(void *argument)
{
    thread_prompt();
    *(uint64_t *)argument = slice();
    return NULL;
}

Test(thread, a_prompt_one_has_a_short_slice_of_its_own)
{
    struct utsname name;
    uint64_t before, there;
    pthread_t thread;
    int major, minor;
    err_t err = ERR_INIT;

    uname(&name);
    cr_assert_eq(sscanf(name.release, "%d.%d", &major, &minor), 2);
    if (major < 6 || (major == 6 && minor < 12))
        cr_skip("slices need Linux 6.12, this is %s", name.release);
    before = slice();
    cr_assert_eq(thread_start("prompt", prompt, &there, &thread, &err), ERR_OK);
    pthread_join(thread, NULL);
    cr_assert_eq(there, 200000);
    cr_assert_eq(slice(), before, "it is that thread's alone");
}
