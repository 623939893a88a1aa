/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_walk: every dataset that the links of an HDF5 file lead to. */
#ifndef CDDP_CMD_DATA_WALK_H
#define CDDP_CMD_DATA_WALK_H

#include <hdf5.h>

#include "base/err.h"

/* A dataset, open during the call. [path] has a slash in front; [target] is
 * what a soft or external link of that name leads to, else NULL. An error ends
 * the walk. */
typedef err_code_t (*cmd_walk_visit_t)(void *context, hid_t dataset,
                                       const char *path, const char *target,
                                       err_t *err);

/*
 * Visit the datasets of the open [file] (called [name]), in the order of names,
 * groups gone into where they stand. Soft and external links are followed to
 * datasets, not into groups; a group with several names is gone into once.
 * ERR_DATA: damaged, a link that leads nowhere, or groups deeper than anybody
 * nests them. Lock held.
 */
err_code_t cmd_data_walk(hid_t file, const char *name, cmd_walk_visit_t visit,
                         void *context, err_t *err);

#endif
