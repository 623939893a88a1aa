/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * home: finds the file that holds an object, and the place where HDF5 looks for
 * a file that another file names (external links, sources of virtual datasets,
 * external raw files).
 */
#ifndef CDDP_HDF5IO_HOME_H
#define CDDP_HDF5IO_HOME_H

#include <hdf5.h>
#include <stdbool.h>

#include "base/err.h"

/* Name of the file that holds the open [object], as HDF5 opened it; for an
 * object behind an external link, the target file. The caller frees it. NULL if
 * HDF5 does not know it. Lock held. */
char *hdf5io_home_name(hid_t object);

/* Do both names refer to the same file? */
bool hdf5io_home_same(const char *a, const char *b);

/*
 * Open for reading the HDF5 file that a virtual dataset or an external link in
 * the file [home] calls [name]. The places are tried in HDF5's own order: the
 * name if it is absolute; the directories in the environment variable
 * [prefixes] ("HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX"); the directory of [home];
 * the working directory; if [home] is a symbolic link, the directory of its
 * target. If an absolute name does not open, only its last component is tried
 * in the other places. H5Fclose closes the file. H5I_INVALID_HID if none opens;
 * then *refused names the first existing file that does not open and HDF5's
 * reason (to be freed), or is NULL. Lock held.
 */
hid_t hdf5io_home_open(const char *home, const char *name, const char *prefixes,
                       char **refused);

/*
 * H5Oopen(at, path) that follows external links only to regular files. HDF5
 * itself would open a pipe and wait for its writer while the lock is held. The
 * name is checked just before HDF5 opens it. *external (optional) becomes true
 * if the path has such a link, even a link that leads back to the same file.
 * Lock held.
 */
hid_t hdf5io_home_object(hid_t at, const char *path, bool *external);

/* Path of the external raw file that a dataset in the file [home] calls [name].
 * The caller frees it. */
char *hdf5io_home_raw(const char *home, const char *name);

#endif
