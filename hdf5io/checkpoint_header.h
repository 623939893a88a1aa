/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_header: HDF5 makes a file of a checkpoint in memory (memfd): the
 * headers are in memory, and the data are holes, which take no memory.
 * checkpoint_body.h writes the headers to storage. So HDF5 never writes to
 * storage, and never keeps a file open that storage would not let it close.
 *
 * Thread rule: one thread per header.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_HEADER_H
#define CDDP_HDF5IO_CHECKPOINT_HEADER_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_header {
    char *path;     /* that the file will have, for messages */
    int fd;         /* of the memory; -1: not open */
    hid_t file;     /* negative: closed */
    uint64_t bytes; /* of the whole file; known once [file] is closed */
} hdf5io_header_t;

/* A header that is not open. */
#define HDF5IO_HEADER_NONE \
    {                      \
        .fd = -1           \
    }

/* Make an empty file; its path will be [path]. ERR_IO. HDF5 lock held.
 * hdf5io_header_close follows in any case. */
err_code_t hdf5io_header_open(const char *path, hdf5io_header_t *out,
                              err_t *err);

/* All objects are in the file: let HDF5 close the file. [rc] is the outcome so
 * far. Returns [rc], or the error of closing if [rc] is ERR_OK. HDF5 lock held.
 */
err_code_t hdf5io_header_end(hdf5io_header_t *header, err_code_t rc,
                             err_t *err);

/* Copy [count] bytes of the file, from byte [at] on, to [to]. The file has all
 * these bytes. ERR_IO. */
err_code_t hdf5io_header_read(const hdf5io_header_t *header, void *to,
                              size_t count, uint64_t at, err_t *err);

/* Free the memory. HDF5 lock not held. A header that is not open is allowed. */
void hdf5io_header_close(hdf5io_header_t *header);

#endif
