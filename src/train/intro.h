/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* intro: the five lines with which a run begins: run, ranks, model, data, time.
 */
#ifndef CDDP_TRAIN_INTRO_H
#define CDDP_TRAIN_INTRO_H

#include "train/run_priv.h"

/* Rank 0, once everything is open: print the five lines, and log a warning if
 * most of the job's cores are not used, and another one if messages to other
 * hosts go over TCP although this host has InfiniBand. Other ranks do
 * nothing. */
void train_intro_print(train_state_t *run);

/* Are fewer than half of the job's cores on this node used by [ranks] ranks of
 * [cores] cores each? Fewer than half, because a rank may use one of two
 * hardware threads of a core on purpose. [per_node] is the value of
 * SLURM_JOB_CPUS_PER_NODE ("128(x2),64"), of which the first number counts;
 * NULL: there is no job. Then [out] of [room] bytes is the sentence. */
bool train_intro_idle(const char *per_node, int ranks, int cores, char *out,
                      size_t room);

/* Is [route] (comm_group_route) TCP, and are there [ports]
 * (comm_infiniband_ports) that are not used? Then [out] of [room] bytes is the
 * sentence. */
bool train_intro_slow(const char *route, const char *ports, char *out,
                      size_t room);

#endif
