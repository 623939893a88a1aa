/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_find: finds the checkpoint that a path names, for programs that
 * only read. All calls are local. */
#ifndef CDDP_HDF5IO_CHECKPOINT_FIND_H
#define CDDP_HDF5IO_CHECKPOINT_FIND_H

#include "base/err.h"

/* Directory that has the checkpoints of [path]: [path]/checkpoints if it
 * exists, else [path] itself. The caller frees it. */
char *hdf5io_checkpoint_home(const char *path);

/* List the paths of the checkpoints of a run (its directory, or its
 * checkpoints/), newest first, as hdf5io_checkpoint_list does. ERR_DATA: there
 * is none. */
err_code_t hdf5io_checkpoint_list_of(const char *run, char ***paths, int *count,
                                     err_t *err);

/* Set *out to the path of a checkpoint: [path] itself, or the newest checkpoint
 * if [path] is a run directory. The caller frees it. ERR_DATA: there is none.
 */
err_code_t hdf5io_checkpoint_find(const char *path, char **out, err_t *err);

#endif
