/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt repair: finds intact checkpoints that are not published, and gives
 * them the name of a checkpoint. */
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
 * Verify all superseded checkpoints, and all that interrupted saves left,
 * newest first. Adopt the chosen ones ([names]) that are intact: rename them
 * to step-N, unless there is a checkpoint of this step. Appends a line to [out]
 * for each. Nothing is removed.
 *
 * ERR_DATA: [run] does not exist or is one checkpoint; a named one does not
 * exist, is damaged, or there is a checkpoint of its step. ERR_CONFIG: a later
 * version of cddp wrote a named one. ERR_BUSY: a run holds the lock of the run
 * directory, which is taken only for each adoption. ERR_IO: storage failed, or
 * the file system has no locks. After an error the other entries are verified
 * and adopted all the same.
 */
err_code_t cmd_ckpt_repair(const cmd_ckpt_repair_t *repair, str_buf_t *out,
                           err_t *err);

#endif
