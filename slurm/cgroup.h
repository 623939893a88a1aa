/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cgroup: which cgroup this process is in, and what its files say. Both
 * versions of cgroups are read. A path of "" is the top of the tree; the
 * cgroups of all parts of a path count for the process.
 */
#ifndef CDDP_SLURM_CGROUP_H
#define CDDP_SLURM_CGROUP_H

#include <stdbool.h>

/* The cgroup of this process for one controller. */
typedef struct slurm_cgroup {
    bool second;     /* version 2 */
    char top[4096];  /* where the tree is mounted */
    char path[4096]; /* of the cgroup itself, below [top] */
} slurm_cgroup_t;

/* Find the cgroup of this process for [controller] ("memory", "cpu"). [root] is
 * put before the paths below /proc and /sys; "" except in tests. False: there
 * are no cgroups. */
bool slurm_cgroup_find(const char *root, const char *controller,
                       slurm_cgroup_t *out);

/* Cut [path] to the cgroup above it; "": the top. */
void slurm_cgroup_up(char *path);

/* Read the file [name] of the cgroup [path]; "": there is none. */
#define SLURM_CGROUP_VALUE 1024 /* bytes of a file with limits or counters */
void slurm_cgroup_read(const slurm_cgroup_t *cgroup, const char *path,
                       const char *name, char out[SLURM_CGROUP_VALUE]);

#endif
