/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_io: the system calls that decide whether a checkpoint is durable,
 * behind a small table, so that tests can make any of them fail or be the last
 * call of a process. Internal to the checkpoint files.
 *
 * Every write error is ERR_IO and names the path and the system's reason. After
 * a failed fsync the file counts as lost and is not synced again.
 *
 * Reads use base/retry.h: if storage refuses, the file is opened and read
 * again. ERR_IO: storage still refused after all tries. ERR_DATA with a [cause]
 * of RETRY_ABSENT: the file is missing, too short or not a regular file, so the
 * checkpoint is damaged. ERR_DATA with RETRY_FORBIDDEN: a read permission is
 * missing.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_IO_H
#define CDDP_HDF5IO_CHECKPOINT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/retry.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_sums.h"

/* Each function returns what the system call returns and sets errno. */
typedef struct hdf5io_io {
    void *context;
    ssize_t (*write_at)(void *context, int fd, const void *bytes, size_t count,
                        off_t offset);
    int (*sync)(void *context, int fd);
    /* renameat2 without directory descriptors; [flags] is 0 or
     * RENAME_EXCHANGE. */
    int (*rename)(void *context, const char *from, const char *to,
                  unsigned flags);
    /* (optional) Reserve the space of the first [bytes] bytes of an empty file,
     * which gets this size. Default: fallocate. */
    int (*reserve)(void *context, int fd, off_t bytes);
    /* (optional) Begin to write these bytes back to the disk, and do not wait.
     * Default: sync_file_range; the next fsync reports the errors. */
    void (*push)(void *context, int fd, off_t first, off_t bytes);
    /* (optional) For reading. Default: the system calls. */
    int (*open)(void *context, const char *path, int flags);
    ssize_t (*read_at)(void *context, int fd, void *bytes, size_t count,
                       off_t offset);
    /* (optional) Drop what the page cache has of an open file whose bytes are
     * synced. Default: posix_fadvise; what it cannot drop stays. */
    void (*forget)(void *context, int fd);
    /* (optional) Called after each block of bytes. Default: nothing. */
    void (*alive)(void *context);
    void *alive_context;
    double retry_seconds; /* see hdf5io_checkpoint_config_t */
} hdf5io_io_t;

/* The system's own calls. */
extern const hdf5io_io_t hdf5io_io_system;

/* The table for [config], with the [alive] callback of its votes. */
hdf5io_io_t hdf5io_io_of(const hdf5io_checkpoint_config_t *config);

/* Bytes to write, and their offset in the file. */
typedef struct hdf5io_io_data {
    const void *bytes;
    size_t count;
    off_t offset;
} hdf5io_io_data_t;

/* Reserve [bytes] bytes for the empty file [fd], so that a lack of space is
 * known before the first byte is written. Nothing is done where the file system
 * cannot reserve. */
err_code_t hdf5io_io_reserve(const hdf5io_io_t *io, int fd, const char *path,
                             uint64_t bytes, err_t *err);

/* Write all of [data] to [fd]. [path] is used in errors. */
err_code_t hdf5io_io_write(const hdf5io_io_t *io, int fd, const char *path,
                           const hdf5io_io_data_t *data, err_t *err);

/* Create [path], which must not exist, with [count] bytes, durably. */
err_code_t hdf5io_io_create(const hdf5io_io_t *io, const char *path,
                            const void *bytes, size_t count, err_t *err);

/* fsync an open file. Uses the descriptor that wrote the data, since delayed
 * write errors are reported there for sure. */
err_code_t hdf5io_io_flush(const hdf5io_io_t *io, int fd, const char *path,
                           err_t *err);

/* fsync a file or directory by path. If the file system cannot sync directories
 * (EINVAL), this is no failure. */
err_code_t hdf5io_io_sync(const hdf5io_io_t *io, const char *path, err_t *err);

/* The retry policy for reads through [io]. */
retry_t hdf5io_io_retry(const hdf5io_io_t *io);

/* Open [path], read [count] bytes at [offset], close. */
err_code_t hdf5io_io_read(const hdf5io_io_t *io, const char *path, void *bytes,
                          size_t count, off_t offset, err_t *err);

/* A file that stays open between reads. */
typedef struct hdf5io_io_file {
    const hdf5io_io_t *io;
    const char *path;
    int fd; /* -1: not open */
    uint64_t size;
} hdf5io_io_file_t;

/* Open [path], which outlives the file, and get its size. */
err_code_t hdf5io_io_file_open(const hdf5io_io_t *io, const char *path,
                               hdf5io_io_file_t *out, retry_cause_t *cause,
                               err_t *err);

/* Read [count] bytes at [offset]. If storage refuses, the file is opened again.
 */
err_code_t hdf5io_io_file_read(hdf5io_io_file_t *file, void *bytes,
                               size_t count, off_t offset, retry_cause_t *cause,
                               err_t *err);
void hdf5io_io_file_close(hdf5io_io_file_t *file);

/* Read the whole manifest [path] and append a NUL byte. The caller frees *text.
 * ERR_DATA if it is larger than any manifest can be. [cause]: see retry_run. */
err_code_t hdf5io_io_load(const hdf5io_io_t *io, const char *path, char **text,
                          size_t *bytes, retry_cause_t *cause, err_t *err);

/* XXH3 hashes and size of the content of [path]. The caller sets
 * sums->block_bytes. */
err_code_t hdf5io_io_hash(const hdf5io_io_t *io, const char *path,
                          hdf5io_sums_t *sums, retry_cause_t *cause,
                          err_t *err);

/* Read the synced file [path] back, past the page cache: it must have the hash
 * [hash]. ERR_IO if it has not, or cannot be read. */
err_code_t hdf5io_io_compare(const hdf5io_io_t *io, const char *path,
                             uint64_t hash, err_t *err);

/* Blocks number first to last - 1 of a file. Other ranks may have written some
 * of their bytes. */
typedef struct hdf5io_io_blocks {
    uint64_t block_bytes;
    size_t first, last;
    uint64_t *hashes; /* [last - first] */
} hdf5io_io_blocks_t;

/* Read these blocks of the synced file [path] back and set their hashes. If
 * [disk] is true, read them once more, past the page cache: ERR_IO if the
 * hashes differ. ERR_IO also if they cannot be read. */
err_code_t hdf5io_io_blocks(const hdf5io_io_t *io, const char *path, bool disk,
                            const hdf5io_io_blocks_t *blocks, err_t *err);

/* Rename [from] to [to]. Fails if [to] is a non-empty directory. */
err_code_t hdf5io_io_rename(const hdf5io_io_t *io, const char *from,
                            const char *to, err_t *err);

#endif
