/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt diff: what two checkpoints do not have in common. */
#ifndef CDDP_CMD_CKPT_DIFF_H
#define CDDP_CMD_CKPT_DIFF_H

#include "base/err.h"
#include "base/str.h"

/*
 * Compare the checkpoints in directories [a] and [b]: progress and the bits of
 * every tensor. Appends one line for each difference to [out] and counts them
 * in *differences. How the tensors are cut into files plays no part. ERR_DATA:
 * one is damaged.
 */
err_code_t cmd_ckpt_diff(const char *a, const char *b, str_buf_t *out,
                         int *differences, err_t *err);

#endif
