/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt list, show and verify: print checkpoints as text. */
#ifndef CDDP_CMD_CKPT_SHOW_H
#define CDDP_CMD_CKPT_SHOW_H

#include "base/err.h"
#include "base/str.h"

/* Append one line to [out] for each checkpoint of [run] (a run directory, or
 * its checkpoints/), newest first, and one that counts what no run reads any
 * more. Only manifests are read. ERR_DATA: there is none. */
err_code_t cmd_ckpt_list(const char *run, str_buf_t *out, err_t *err);

/* Append the contents of the manifest in directory [path] to [out]. */
err_code_t cmd_ckpt_show(const char *path, str_buf_t *out, err_t *err);

/* Hash every file of the checkpoint in directory [path]. Appends one line to
 * [out] if all files are as they were written; otherwise ERR_DATA names a file
 * that has changed. */
err_code_t cmd_ckpt_verify(const char *path, str_buf_t *out, err_t *err);

#endif
