/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads the run file of a command, and applies the changes by --pick and --set.
 */
#ifndef CDDP_CMD_RUN_FILE_H
#define CDDP_CMD_RUN_FILE_H

#include "base/tree.h"
#include "cmd/args.h"
#include "train/config.h"

typedef struct run_file {
    const char *path;
    const cmd_sets_t *sets;
    const char *pick; /* the file of --pick (pick.h); NULL: none */
    /* passed to train_config_read; NULL: the job is not known yet */
    const slurm_job_t *job;
} run_file_t;

/* Read the run file at file->path, apply the line of file->pick that belongs to
 * this task of a Slurm array, then file->sets in order, and check the result.
 * Also ERR_CONFIG: all tasks of the array would share run.dir of the run file.
 * The caller frees [config] with train_config_free, then [tree], into which it
 * points, with tree_free. */
err_code_t run_file_read(const run_file_t *file, tree_t **tree,
                         train_config_t *config, err_t *err);

#endif
