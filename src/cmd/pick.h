/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-train --pick FILE: each task of a Slurm array takes its settings from
 * one line of a file. */
#ifndef CDDP_CMD_PICK_H
#define CDDP_CMD_PICK_H

#include "base/err.h"
#include "base/tree.h"

/*
 * Apply the words KEY=VALUE in line [task] of the file at [path] to the map
 * [root], as conf_set does. Lines are counted from 1. Blanks divide words; a
 * part of a word in '...' or "..." may contain them. [task] is the value of
 * SLURM_ARRAY_TASK_ID (NULL: it is not set). ERR_USAGE, with file and line, if
 * it is no number, or the line is missing, empty or has a word of another form;
 * ERR_IO, ERR_DATA: the file cannot be read.
 */
err_code_t pick_apply(const char *path, const char *task, tree_t *root,
                      err_t *err);

#endif
