/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* descriptor: opens files for reading within the limit of open files, which it
 * raises as far as the hard limit allows. */
#ifndef CDDP_HDF5IO_DESCRIPTOR_H
#define CDDP_HDF5IO_DESCRIPTOR_H

#include <stdbool.h>

#include "base/err.h"

/* Open [path] for reading. Non-blocking, so that opening a pipe does not block.
 * Negative on failure; errno holds the reason. */
int hdf5io_descriptor_open(const char *path);

/* Are few descriptors left after [fd], although the limit was raised? [fd] is
 * the lowest number that was free, so it counts all open files of the process,
 * of all ranks and datasets. */
bool hdf5io_descriptor_crowded(int fd);

/* The number of files that each of [sharers] users in this process may keep
 * open for long: together half of the hard limit. At least 1. */
int hdf5io_descriptor_share(int sharers);

/* Set the error for the file [path] that could not be opened, from errno:
 * ERR_DATA, ERR_UNAVAILABLE (too many open files) or ERR_IO. Keeps errno. */
err_code_t hdf5io_descriptor_fail(const char *path, err_t *err);

#endif
