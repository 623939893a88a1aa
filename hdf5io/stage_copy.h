/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* stage_copy: copies one file, see stage.h. */
#ifndef CDDP_HDF5IO_STAGE_COPY_H
#define CDDP_HDF5IO_STAGE_COPY_H

#include <stdatomic.h>

#include "hdf5io/stage.h"

/* Size of the buffer for copying. */
#define STAGE_BLOCK ((size_t)1 << 20)

typedef struct stage_copy {
    const stage_file_t *file;
    int dir;                 /* descriptor of the directory of the copy */
    const char *path;        /* of this directory, for messages */
    const char *name;        /* that the copy gets */
    unsigned char *buffer;   /* [STAGE_BLOCK] */
    const atomic_bool *stop; /* ends the copy */
} stage_copy_t;

/*
 * Copy the file, compare the copy with what was read, and give it its name. The
 * copy is readable for this user only. After an error, or if copying was
 * stopped (ERR_REQUEUE), there is no copy.
 *
 * ERR_DATA: the file cannot be read, or has changed since it was described.
 * ERR_MEMORY: there is no room. ERR_IO: the directory cannot be written, or
 * returned other bytes than were written. Blocks.
 */
err_code_t hdf5io_stage_copy(const stage_copy_t *copy, err_t *err);

#endif
