/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The run file of a command, with what --set changes of it. */
#ifndef CDDP_CMD_RUN_FILE_H
#define CDDP_CMD_RUN_FILE_H

#include "base/tree.h"
#include "cmd/args.h"
#include "train/config.h"

/* Read [path], apply [sets] in order, check. The caller frees [config], which
 * points into [tree], with train_config_free, then [tree] with tree_free. */
err_code_t run_file_read(const char *path, const cmd_sets_t *sets,
                         tree_t **tree, train_config_t *config, err_t *err);

#endif
