/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* view: which ranks of a host see the same files under the same names. */
#ifndef CDDP_TRAIN_VIEW_H
#define CDDP_TRAIN_VIEW_H

#include <stdint.h>

#include "comm/comm.h"

/* A hash of what identifies this rank's view of the file system: the kernel,
 * the host name, the mounts, and where HDF5 looks for files that other files
 * name. Equal on ranks that share all of them. Local. */
uint64_t train_view(const comm_group_t *group);

#endif
