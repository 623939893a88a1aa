/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* links: why a path in an HDF5 file leads nowhere. */
#ifndef CDDP_HDF5IO_LINKS_H
#define CDDP_HDF5IO_LINKS_H

#include <hdf5.h>
#include <stdbool.h>

#include "base/err.h"

/* [path] does not open in [file] (called [name]). Is that because a soft or
 * external link on its way leads nowhere? Then true, and ERR_DATA in [err] with
 * a sentence that names the link and its target, at the end of a chain of
 * links. Lock held. */
bool hdf5io_links_broken(hid_t file, const char *name, const char *path,
                         err_t *err);

/* What the link [path] of [file] leads to, if it is a soft or external link, as
 * text ("part.h5:/spins", "/other"); NULL if it is not. To be freed. Lock held.
 */
char *hdf5io_links_target(hid_t file, const char *path);

#endif
