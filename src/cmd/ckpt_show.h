/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt list, show, verify: checkpoints as text. */
#ifndef CDDP_CMD_CKPT_SHOW_H
#define CDDP_CMD_CKPT_SHOW_H

#include "base/err.h"
#include "base/str.h"

/* The path of a checkpoint: [path] itself, or the newest one if [path] is a run
 * directory. The caller frees it. ERR_DATA: there is none. */
err_code_t cmd_ckpt_find(const char *path, char **out, err_t *err);

/* One line for each checkpoint of a run (its directory, or its checkpoints/),
 * newest first, from the manifests alone. ERR_DATA: there is none. */
err_code_t cmd_ckpt_list(const char *run, str_buf_t *out, err_t *err);

/* Append the contents of the manifest in directory [path]. */
err_code_t cmd_ckpt_show(const char *path, str_buf_t *out, err_t *err);

/* Hash every file of directory [path]. Appends one line if all are as written;
 * else ERR_DATA names the file that is not. */
err_code_t cmd_ckpt_verify(const char *path, str_buf_t *out, err_t *err);

#endif
