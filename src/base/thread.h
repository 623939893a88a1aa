/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Threads, and the number of usable cores. Locks are plain pthread_mutex_t and
 * pthread_cond_t; thread_cond_init makes a condition that uses the monotonic
 * clock, and thread_cond_wait waits until an instant of clock.h. */
#ifndef CDDP_BASE_THREAD_H
#define CDDP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

typedef void *(*thread_main_t)(void *argument);

/* Start a thread called [name] (15 bytes are used) with all signals blocked, so
 * that signals reach only the main thread. The caller joins it. ERR_MEMORY. */
err_code_t thread_start(const char *name, thread_main_t main, void *argument,
                        pthread_t *out, err_t *err);

/*
 * Call [main] in a thread called [name], and wait until [main] returns, but at
 * most [seconds]. *in_time becomes true if [main] has returned. Otherwise the
 * thread goes on, and nobody waits for it any more. So [main] owns [argument],
 * and frees it. ERR_MEMORY: there is no such thread, [main] is not called, and
 * the caller still owns [argument].
 */
err_code_t thread_call(const char *name, thread_main_t main, void *argument,
                       double seconds, bool *in_time, err_t *err);

/*
 * For a thread that does little work, but for which others wait: let it run as
 * soon as it wakes up, even if a computing thread has the core. Needs no
 * privilege, since its share of CPU time does not change. No effect on Linux
 * before 6.12.
 */
void thread_prompt(void);

/*
 * For a thread with much work that nobody waits for: lower its priority. If
 * computing threads fill all cores, it does not interrupt one of them when it
 * wakes up, but waits for an idle core, or for its turn. It is only a hint:
 * nothing is lost if the kernel refuses.
 */
void thread_stand_back(void);

/* Number of cores in this process's affinity mask (sched_getaffinity), at least
 * 1. */
int thread_cores(void);

/* Initialise [cond] for thread_cond_wait. */
void thread_cond_init(pthread_cond_t *cond);

/* Wait until signalled (true) or until [instant] of clock_now (false); a
 * negative instant waits for ever. The function may also return true without a
 * signal, so the caller waits in a loop. The caller holds [lock]. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                      double instant);

#endif
