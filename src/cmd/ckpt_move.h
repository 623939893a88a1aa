/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt export and import: models go to other programs and come from
 * them. */
#ifndef CDDP_CMD_CKPT_MOVE_H
#define CDDP_CMD_CKPT_MOVE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

typedef struct cmd_ckpt_move {
    const char *from, *to;
    const char *map; /* file with a map of names; NULL: names stay */
    bool replace;    /* [to] may exist */
    bool average;    /* export: the moving average of the parameters */
} cmd_ckpt_move_t;

/* Write parameters and running statistics of the checkpoint in directory
 * [move->from], after it was verified, to the safetensors file [move->to].
 * Appends a line to [out]. ERR_DATA: damage, or no moving average; ERR_CONFIG:
 * the map has no line for a tensor, or does not fit it; ERR_USAGE: the file
 * exists. Blocks. */
err_code_t cmd_ckpt_export(const cmd_ckpt_move_t *move, str_buf_t *out,
                           err_t *err);

/* Write the tensors of the safetensors file [move->from] to [move->to], under
 * our names and in our shapes. Needs a map. Errors as above. */
err_code_t cmd_ckpt_import(const cmd_ckpt_move_t *move, str_buf_t *out,
                           err_t *err);

#endif
