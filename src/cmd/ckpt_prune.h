/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt prune: removes what no run will read any more. */
#ifndef CDDP_CMD_CKPT_PRUNE_H
#define CDDP_CMD_CKPT_PRUNE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Remove superseded checkpoints and debris of [run] (a run directory, or its
 * checkpoints/); [dry]: only say what would be removed. Appends a line to [out]
 * for each. While a run holds the lock of the run directory, or if it cannot be
 * locked, debris stays, as it may be a save in progress.
 *
 * ERR_DATA: none of the checkpoints that would stay is intact, so nothing is
 * removed. ERR_IO: something could not be removed; the rest was.
 */
err_code_t cmd_ckpt_prune(const char *run, bool dry, str_buf_t *out,
                          err_t *err);

#endif
