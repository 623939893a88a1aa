/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* links: explains why a path in an HDF5 file does not open. */
#ifndef CDDP_HDF5IO_LINKS_H
#define CDDP_HDF5IO_LINKS_H

#include <hdf5.h>
#include <stdbool.h>

#include "base/err.h"

/* Called when [path] does not open in [file] (called [name]). True if the
 * reason is a broken soft or external link on the path; then [err] is ERR_DATA
 * and names the last link of the chain and its target. Lock held. */
bool hdf5io_links_broken(hid_t file, const char *name, const char *path,
                         err_t *err);

/* Target of the soft or external link [path] of [file] as text
 * ("part.h5:/spins", "/other"); NULL if it is no such link. The caller frees
 * it. Lock held. */
char *hdf5io_links_target(hid_t file, const char *path);

#endif
