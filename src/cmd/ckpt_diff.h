/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt diff: finds the differences of two checkpoints. */
#ifndef CDDP_CMD_CKPT_DIFF_H
#define CDDP_CMD_CKPT_DIFF_H

#include "base/err.h"
#include "base/str.h"

/*
 * Compare the checkpoints in directories [a] and [b]: progress and the bits of
 * every tensor. Appends one line for each difference to [out], then one that
 * names the largest difference of two numbers; if there is none, one that says
 * "identical". *differences becomes their number. The checkpoints may have
 * different numbers of files.
 * ERR_DATA: a checkpoint is damaged.
 */
err_code_t cmd_ckpt_diff(const char *a, const char *b, str_buf_t *out,
                         int *differences, err_t *err);

#endif
