/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The run file of a command, with what --set changes of it. */
#ifndef CDDP_CMD_RUN_FILE_H
#define CDDP_CMD_RUN_FILE_H

#include "base/tree.h"
#include "cmd/args.h"
#include "train/config.h"

typedef struct run_file {
    const char *path;
    const cmd_sets_t *sets;
    const slurm_job_t *job; /* as for train_config_read */
} run_file_t;

/* Read file->path, apply file->sets in order, check. The caller frees [config],
 * which points into [tree], with train_config_free, then [tree] with tree_free.
 */
err_code_t run_file_read(const run_file_t *file, tree_t **tree,
                         train_config_t *config, err_t *err);

#endif
