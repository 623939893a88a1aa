/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * home: which file holds an object, and where HDF5 looks for a file that
 * another file names (external links, sources of virtual datasets, external raw
 * storage).
 */
#ifndef CDDP_HDF5IO_HOME_H
#define CDDP_HDF5IO_HOME_H

#include <hdf5.h>
#include <stdbool.h>

#include "base/err.h"

/* The name of the file that holds the open [object], as HDF5 opened it: behind
 * an external link, that of the target. To be freed; NULL if HDF5 does not say.
 * Lock held. */
char *hdf5io_home_name(hid_t object);

/* Do both names lead to one file? */
bool hdf5io_home_same(const char *a, const char *b);

/*
 * Open for reading the HDF5 file that a virtual dataset, or an external link,
 * in the file [home] calls [name]. Tried in HDF5's own order: the name if it is
 * absolute; the directories of the environment variable [prefixes]
 * ("HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX"); the directory of [home]; the working
 * directory; the directory that [home], a symbolic link, leads to. Of an
 * absolute name that does not open, only its last part is looked for.
 * H5I_INVALID_HID if none opens; then *refused names the first file in these
 * places that is there but does not open, with HDF5's reason (to be freed), or
 * is NULL. H5Fclose closes. Lock held.
 */
hid_t hdf5io_home_open(const char *home, const char *name, const char *prefixes,
                       char **refused);

/*
 * H5Oopen(at, path), but an external link on the way is followed to regular
 * files only: HDF5 would wait for the writer of a pipe of that name, with the
 * lock held. Looked at just before HDF5 opens it by the same name. Lock held.
 */
hid_t hdf5io_home_object(hid_t at, const char *path);

/* The path of the external raw file that a dataset in the file [home] calls
 * [name]; to be freed. */
char *hdf5io_home_raw(const char *home, const char *name);

#endif
