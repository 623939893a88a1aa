/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * train_local: are the ranks of `cddp-train --local N` threads or processes?
 *
 * On GPUs they are processes: NCCL warns of deadlocks if one process has
 * several GPUs and captured graphs. On CPUs they are threads, which start
 * faster and share memory. ddp.backend: threads asks for threads in any case.
 */
#ifndef CDDP_CMD_TRAIN_LOCAL_H
#define CDDP_CMD_TRAIN_LOCAL_H

#include <stdbool.h>

#include "train/config.h"

/* Return whether ranks on [device] (index in dev_choices) that use [backend]
 * (NULL: any) are processes. For "auto" another process looks for a GPU, since
 * one that has touched CUDA must not start ranks. */
bool train_local_processes(int device, const char *backend);
/* The same for a run with [config]. */
bool train_local_spawns(const train_config_t *config);

/* Run this program again, with [argv], as [count] ranks; *status becomes their
 * highest exit status. [timeout]: seconds to find each other. See
 * boot_spawn_run. */
err_code_t train_local_spawn(const train_config_t *config, int count,
                             char *const *argv, double timeout, int *status,
                             err_t *err);

#endif
