/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* stage_dir: makes, shares and removes the directory on this node that holds
 * the copies of a job (stage.h). */
#ifndef CDDP_HDF5IO_STAGE_DIR_H
#define CDDP_HDF5IO_STAGE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Name of the table in the directory. */
#define STAGE_TABLE "table"

typedef struct stage_dir {
    char *path;       /* for messages */
    const char *name; /* last component of [path] */
    int base;         /* descriptor of the directory that contains it */
    int fd;           /* its own, with a shared lock */
    bool made;        /* this rank has made it */
} stage_dir_t;

/* Join the directory of this host for [key] in [base], or make it, with a table
 * of [bytes] zero bytes. It gets its name after its table and a lock, so no
 * other process sees it incomplete. ERR_IO. */
err_code_t hdf5io_stage_dir_open(const char *base, uint64_t key, size_t bytes,
                                 stage_dir_t *out, err_t *err);

/* Remove the directories beside [dir] that this user's jobs on this host left
 * when they were killed. Returns their number. */
int hdf5io_stage_dir_sweep(const stage_dir_t *dir);

/* Remove the directory, unless another process uses it; close it. */
void hdf5io_stage_dir_close(stage_dir_t *dir);

#endif
