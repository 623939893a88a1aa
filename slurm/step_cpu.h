/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * step_cpu: what kept the threads of a rank from running, as the kernel counts
 * it. Where the kernel does not tell, a number is 0. [root] is put before the
 * paths below /proc and /sys; "" except in tests.
 */
#ifndef CDDP_SLURM_STEP_CPU_H
#define CDDP_SLURM_STEP_CPU_H

#include <stdbool.h>

/* Seconds so far in which this process could not run because its cgroup, or one
 * above it, had used up its share of CPU time (cpu.max). If two cores wait for
 * a second, that is two seconds. */
double slurm_cpu_throttled(const char *root);

/* Seconds so far in which threads were ready to run, but other threads had
 * their core: of the calling thread, or, if [whole], summed over all threads of
 * this process. */
double slurm_cpu_delay(const char *root, bool whole);

/* The frequency in Hz of the core on which this thread runs now. */
double slurm_cpu_hertz(const char *root);

#endif
