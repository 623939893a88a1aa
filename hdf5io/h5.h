/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * h5: what every user of HDF5 in this folder shares: the process-wide lock
 * (the library is not thread-safe), silent error stacks turned into sentences,
 * and file access settings that suit parallel file systems (no locking).
 */
#ifndef CDDP_HDF5IO_H5_H
#define CDDP_HDF5IO_H5_H

#include <hdf5.h>
#include <stddef.h>

#include "base/err.h"

/* Hold the lock around every HDF5 call, in this process, in any thread.
 * Until the unlock HDF5's automatic error printing is silent; then it is as
 * before, as the program may be one that uses HDF5 itself. */
void h5_lock(void);
void h5_unlock(void);

/* The same lock for a program that uses HDF5, too: its error printing stays as
 * it is. */
void h5_lock_host(void);
void h5_unlock_host(void);

/* Set [err] from the sentence plus HDF5's innermost error text. Where that is
 * the refusal of a system call that storage may answer otherwise later
 * (base/retry.h), the code is ERR_IO whatever [code] says, and errno is that of
 * the call. Lock held. */
err_code_t h5_err_set(err_t *err, err_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The errno of the system call that HDF5's error stack tells of, 0: of none.
 * Leaves the stack alone. Lock held. */
int h5_err_number(void);

/* Take HDF5's innermost error text into [out], which is returned ("" if there
 * is none), and clear its error stack. It is whole: "errno = " and the rest of
 * a driver's variables are there for who looks for them. Lock held. */
char *h5_err_text(char *out, size_t room);

/* A file-access list: no file locking (Lustre, NFS), 1.10 format bounds,
 * alignment for large objects. Lock held; H5Pclose frees. */
hid_t h5_access_list(void);

#endif
