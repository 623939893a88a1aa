/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt repair: finds intact checkpoints under other names. */
#ifndef CDDP_CMD_CKPT_REPAIR_H
#define CDDP_CMD_CKPT_REPAIR_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

typedef struct cmd_ckpt_repair {
    const char *run; /* a run directory, or its checkpoints/ */
    char **names;    /* [count] entries; 0: all that interrupted saves left */
    int count;
    bool dry; /* only say what would happen */
} cmd_ckpt_repair_t;

/*
 * Verify what interrupted saves left and superseded checkpoints, newest first,
 * and give the chosen ones that are intact the name of a checkpoint, unless
 * there is one of their step. Appends a line to [out] for each. Nothing is
 * removed.
 *
 * ERR_DATA: [run] does not exist or is one checkpoint; a named one does not
 * exist, is damaged, or its step has a checkpoint. ERR_CONFIG: a later version
 * of cddp wrote a named one. ERR_BUSY: a run holds the lock of the run
 * directory, which is taken for each adoption only. ERR_IO: storage failed, or
 * there are no locks. The rest is done all the same.
 */
err_code_t cmd_ckpt_repair(const cmd_ckpt_repair_t *repair, str_buf_t *out,
                           err_t *err);

#endif
