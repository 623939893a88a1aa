/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * h5: shared by all users of HDF5 in this folder: the process-wide lock (the
 * library is not thread-safe), conversion of error stacks into sentences, and
 * file access settings for parallel file systems (no locking).
 */
#ifndef CDDP_HDF5IO_H5_H
#define CDDP_HDF5IO_H5_H

#include <hdf5.h>
#include <stddef.h>

#include "base/err.h"

/* Every HDF5 call of any thread must hold this lock. While it is held, HDF5
 * does not print its errors. Unlocking restores the former setting, since the
 * host program may use HDF5 itself. */
void h5_lock(void);
void h5_unlock(void);

/* The same lock for a host program's own HDF5 calls; its error printing is
 * unchanged. */
void h5_lock_host(void);
void h5_unlock_host(void);

/* Check (base/check.h) that the calling thread holds the lock. */
void h5_lock_check(void);

/* Set [err] to the sentence plus HDF5's innermost error text. If the error
 * comes from a system call that may succeed later (base/retry.h), the code is
 * ERR_IO whatever [code] says, and errno is that of the call. Lock held. */
err_code_t h5_err_set(err_t *err, err_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* errno of the failed system call in HDF5's error stack; 0 if there is none.
 * The stack is unchanged. Lock held. */
int h5_err_number(void);

/* Copy HDF5's innermost error text to [out] ("" if there is none), clear the
 * error stack and return [out]. The text is complete, with "errno = " and the
 * driver's other variables, so that callers can search it. Lock held. */
char *h5_err_text(char *out, size_t room);

/* A file-access list: no file locking (Lustre, NFS), 1.10 format bounds,
 * alignment of large objects. H5Pclose frees it. Lock held. */
hid_t h5_access_list(void);

#endif
