/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_walk: visits all datasets that can be reached in an HDF5 file. */
#ifndef CDDP_CMD_DATA_WALK_H
#define CDDP_CMD_DATA_WALK_H

#include <hdf5.h>

#include "base/err.h"

/* Called for each [dataset], which is open during the call. [path] begins with
 * a slash. [target] is the target of a soft or external link, NULL for a hard
 * link. An error ends the walk. */
typedef err_code_t (*cmd_walk_visit_t)(void *context, hid_t dataset,
                                       const char *path, const char *target,
                                       err_t *err);

/*
 * Visit the datasets of the open [file] (called [name]), depth first, in the
 * order of names. Soft and external links are followed to datasets, not to
 * groups. A group with several names is visited once. ERR_DATA: the file is
 * damaged, a link has no target, or groups are nested too deeply. The HDF5 lock
 * is held.
 */
err_code_t cmd_data_walk(hid_t file, const char *name, cmd_walk_visit_t visit,
                         void *context, err_t *err);

#endif
