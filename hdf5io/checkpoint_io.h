/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_io: the system calls that decide whether a checkpoint is durable,
 * behind one small table, so that tests can make any of them fail or be the
 * last one of a process. Internal to the checkpoint files.
 *
 * Every error of writing is ERR_IO and names the path and the system's reason.
 * After a failed sync the file counts as lost: nobody retries it.
 *
 * Reading goes through base/retry.h: what storage refuses is no damage, and the
 * file is opened and read again. ERR_IO: storage stayed ill. ERR_DATA with a
 * [cause] of RETRY_ABSENT: the file is missing, is no file or too short, so the
 * checkpoint is damaged; of RETRY_FORBIDDEN: it must be made readable.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_IO_H
#define CDDP_HDF5IO_CHECKPOINT_IO_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/retry.h"
#include "hdf5io/checkpoint.h"

/* Each slot answers as the system call does, with errno. */
typedef struct hdf5io_io {
    void *context;
    ssize_t (*write_at)(void *context, int fd, const void *bytes, size_t count,
                        off_t offset);
    int (*sync)(void *context, int fd);
    /* renameat2 without directories: [flags] is 0 or RENAME_EXCHANGE. */
    int (*rename)(void *context, const char *from, const char *to,
                  unsigned flags);
    /* (optional) To read. Default: the system's. */
    int (*open)(void *context, const char *path, int flags);
    ssize_t (*read_at)(void *context, int fd, void *bytes, size_t count,
                       off_t offset);
    /* (optional) Called between two bites of bytes. Default: nothing. */
    void (*alive)(void *context);
    void *alive_context;
    double retry_seconds; /* see hdf5io_checkpoint_config_t */
} hdf5io_io_t;

/* The system's own calls. */
extern const hdf5io_io_t hdf5io_io_system;

/* The table that [config] asks for, with the votes' sign of life. */
hdf5io_io_t hdf5io_io_of(const hdf5io_checkpoint_config_t *config);

/* Write all [count] bytes at [offset] of [fd]; [path] is for the sentence. */
err_code_t hdf5io_io_write(const hdf5io_io_t *io, int fd, const char *path,
                           const void *bytes, size_t count, off_t offset,
                           err_t *err);

/* Create [path] (it must not exist) with [count] bytes, durable. */
err_code_t hdf5io_io_create(const hdf5io_io_t *io, const char *path,
                            const void *bytes, size_t count, err_t *err);

/* fsync an open file: on the descriptor that wrote it, where write errors that
 * came late are sure to be reported. */
err_code_t hdf5io_io_flush(const hdf5io_io_t *io, int fd, const char *path,
                           err_t *err);

/* fsync a file or directory by path. */
err_code_t hdf5io_io_sync(const hdf5io_io_t *io, const char *path, err_t *err);

/* How what [io] reads is tried again. */
retry_t hdf5io_io_retry(const hdf5io_io_t *io);

/* Open [path], read [count] bytes at [offset], close. */
err_code_t hdf5io_io_read(const hdf5io_io_t *io, const char *path, void *bytes,
                          size_t count, off_t offset, err_t *err);

/* The whole content of the manifest [path], with a NUL behind it; free() it.
 * ERR_DATA if it is larger than any manifest. [cause]: see retry_run. */
err_code_t hdf5io_io_load(const hdf5io_io_t *io, const char *path, char **text,
                          size_t *bytes, retry_cause_t *cause, err_t *err);

/* Size of the file [path]. */
err_code_t hdf5io_io_size(const hdf5io_io_t *io, const char *path,
                          uint64_t *bytes, retry_cause_t *cause, err_t *err);

/* XXH3 hash of the content of [path], and its size. */
err_code_t hdf5io_io_hash(const hdf5io_io_t *io, const char *path,
                          uint64_t *hash, uint64_t *bytes, retry_cause_t *cause,
                          err_t *err);

/* Rename; [to] must not be there as a non-empty directory. */
err_code_t hdf5io_io_rename(const hdf5io_io_t *io, const char *from,
                            const char *to, err_t *err);

#endif
