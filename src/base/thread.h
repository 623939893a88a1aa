/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Threads, and the number of cores that this process may use. Locks are plain
 * pthread_mutex_t and pthread_cond_t; thread_cond_init makes a condition that
 * waits on the monotonic clock, thread_cond_wait waits until a clock.h instant.
 */
#ifndef CDDP_BASE_THREAD_H
#define CDDP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

typedef void *(*thread_main_t)(void *argument);

/* Start a joinable thread called [name] (15 bytes are kept) with all signals
 * blocked, so that signals reach the main thread only. */
err_code_t thread_start(const char *name, thread_main_t main, void *argument,
                        pthread_t *out, err_t *err);

/*
 * The calling thread does little, but others wait for it: let it run as soon as
 * it wakes, also where a computing thread has the core. Needs no privilege, as
 * its share of the time stays what it is. Linux before 6.12 has no such thing;
 * then nothing changes.
 */
void thread_prompt(void);

/* Cores in this process's affinity mask (sched_getaffinity), at least 1. */
int thread_cores(void);

/* Initialise [cond] for thread_cond_wait. */
void thread_cond_init(pthread_cond_t *cond);

/* Wait until signalled (true) or until [instant] of clock_now (false); a
 * negative instant waits for ever. [lock] is held as usual. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                      double instant);

#endif
