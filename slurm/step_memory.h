/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * step_memory: how much memory the ranks of one node may use together, and how
 * many of them the kernel has killed for lack of it. Slurm limits a step by a
 * cgroup; both versions of cgroups are read.
 */
#ifndef CDDP_SLURM_STEP_MEMORY_H
#define CDDP_SLURM_STEP_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* A limit, and where it comes from ("this host", "the step's cgroup",
 * "SLURM_MEM_PER_NODE"). */
typedef struct slurm_memory {
    uint64_t bytes;
    const char *source; /* static text */
} slurm_memory_t;

/* The smallest of: the host's memory; the limits of the cgroups that this
 * process is in; SLURM_MEM_PER_NODE; SLURM_MEM_PER_CPU times the job's cores on
 * this node. [lookup] reads the environment, as for slurm_job_read. [root] is
 * put before the paths below /proc and /sys; "" except in tests. */
slurm_memory_t slurm_memory_limit(const char *(*lookup)(const char *name),
                                  const char *root);

/* How many processes the kernel has killed so far for lack of memory in the
 * cgroup of this step (if Slurm makes no cgroups: in the cgroup of this
 * process). -1: unknown, as there are no cgroups. [root]: as above. */
int64_t slurm_memory_kills(const char *root);

/* Write the cause of a death: "out of memory: the step's limit is 4.0 GiB (the
 * step's cgroup), oom_kill 1". [kills] is the number of kills since the start
 * of the step. Returns [out]. */
char *slurm_memory_words(const slurm_memory_t *limit, int64_t kills, char *out,
                         size_t room);

#endif
