/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info --topology: prints hosts, CPUs, NUMA nodes and GPUs of the ranks of
 * this Slurm step, how they send to each other, and the table of algorithms. */
#ifndef CDDP_CMD_INFO_TOPOLOGY_H
#define CDDP_CMD_INFO_TOPOLOGY_H

#include <stdbool.h>

#include "base/err.h"
#include "boot/boot.h"

/* Rank 0 prints the hosts, the ranks on each with their CPUs, NUMA nodes and
 * GPUs, how ranks send to each other (info_routes.h), and the table in the file
 * [table] (NULL: the built-in one). If a rank cannot read this file, all ranks
 * end with its error, and *speaker, which is true before, becomes false on the
 * other ranks: they do not print the error. Collective; closes [boot]. */
err_code_t info_topology(boot_t *boot, const char *table, bool *speaker,
                         err_t *err);

#endif
