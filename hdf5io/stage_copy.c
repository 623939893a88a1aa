/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A copy is written under another name, synced and read back. It is renamed
 * only if its bytes have the hash of the bytes that were read from the file.
 * Before the copy is read back, its pages are dropped from the page cache, so
 * that the bytes on the disk are compared, not those in the cache.
 */
#include "hdf5io/stage_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "hdf5io/descriptor.h"
#include "hdf5io/shard.h"

#define COPY_DRAFT "draft"

static bool copy_is_same(const stage_copy_t *copy, int fd)
{
    const catalogue_facts_t facts = {.bytes = copy->file->bytes,
                                     .changed = copy->file->changed,
                                     .inode = copy->file->inode};
    struct stat status;

    return fstat(fd, &status) == 0 && hdf5io_shard_unchanged(&status, &facts);
}

static err_code_t copy_changed(const stage_copy_t *copy, err_t *err)
{
    return err_set(err, ERR_DATA, "%s was changed", copy->file->path);
}

static err_code_t copy_unreadable(const stage_copy_t *copy, err_t *err)
{
    return err_set(err, ERR_DATA, "cannot read %s: %s", copy->file->path,
                   strerror(errno));
}

/* The error of a system call on the copy, from errno. */
static err_code_t copy_refused(const stage_copy_t *copy, err_t *err)
{
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return err_set(err, ERR_MEMORY, "%s has no room for more", copy->path);
    return err_set(err, ERR_IO, "cannot write in %s: %s", copy->path,
                   strerror(errno));
}

/* Read the next block of [fd]. Returns the number of its bytes, 0 at the end,
 * -1 for an error. */
static ssize_t block_read(const stage_copy_t *copy, int fd, uint64_t at)
{
    ssize_t got;

    do
        got = pread(fd, copy->buffer, STAGE_BLOCK, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Copy all bytes, and add them to [hash]. */
static err_code_t bytes_copy(const stage_copy_t *copy, int from, int to,
                             hash_state_t *hash, err_t *err)
{
    uint64_t at = 0;

    while (at < copy->file->bytes) {
        const ssize_t got = block_read(copy, from, at);

        if (got < 0)
            return copy_unreadable(copy, err);
        if (got == 0)
            return copy_changed(copy, err);
        if (atomic_load(copy->stop))
            return err_set(err, ERR_REQUEUE, "stopped");
        hash_state_add(hash, copy->buffer, (size_t)got);
        if (!file_write_all(to, copy->buffer, (size_t)got))
            return copy_refused(copy, err);
        at += (uint64_t)got;
    }
    return at == copy->file->bytes ? ERR_OK : copy_changed(copy, err);
}

/* Read the copy back, and add its bytes to [hash]. */
static err_code_t bytes_hash(const stage_copy_t *copy, int fd,
                             hash_state_t *hash, err_t *err)
{
    uint64_t at = 0;
    ssize_t got;

    if (fdatasync(fd) != 0)
        return copy_refused(copy, err);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    while ((got = block_read(copy, fd, at)) > 0) {
        if (atomic_load(copy->stop))
            return err_set(err, ERR_REQUEUE, "stopped");
        hash_state_add(hash, copy->buffer, (size_t)got);
        at += (uint64_t)got;
    }
    if (got < 0)
        return err_set(err, ERR_IO, "cannot read in %s: %s", copy->path,
                       strerror(errno));
    return ERR_OK;
}

/* Copy the open file to the open draft, and compare. */
static err_code_t draft_fill(const stage_copy_t *copy, int from, int to,
                             err_t *err)
{
    hash_state_t *hash = hash_state_open();
    uint64_t read, written;
    err_code_t rc;

    rc = bytes_copy(copy, from, to, hash, err);
    if (rc == ERR_OK && !copy_is_same(copy, from))
        rc = copy_changed(copy, err);
    read = hash_state_value(hash);
    hash_state_reset(hash);
    if (rc == ERR_OK)
        rc = bytes_hash(copy, to, hash, err);
    written = hash_state_value(hash);
    hash_state_free(hash);
    if (rc == ERR_OK && read != written)
        rc = err_set(err, ERR_IO,
                     "%s returned other bytes of a copy of %s than were "
                     "written",
                     copy->path, copy->file->path);
    return rc;
}

/* Make the copy of the open file. */
static err_code_t draft_publish(const stage_copy_t *copy, int from, err_t *err)
{
    const int to =
        openat(copy->dir, COPY_DRAFT,
               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    err_code_t rc;

    if (to < 0)
        return copy_refused(copy, err);
    rc = draft_fill(copy, from, to, err);
    close(to);
    if (rc == ERR_OK &&
        renameat(copy->dir, COPY_DRAFT, copy->dir, copy->name) != 0)
        rc = copy_refused(copy, err);
    if (rc != ERR_OK)
        unlinkat(copy->dir, COPY_DRAFT, 0);
    return rc;
}

err_code_t hdf5io_stage_copy(const stage_copy_t *copy, err_t *err)
{
    const int from = hdf5io_descriptor_open(copy->file->path);
    err_code_t rc;

    if (from < 0)
        return copy_unreadable(copy, err);
    if (copy_is_same(copy, from)) {
        (void)posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
        rc = draft_publish(copy, from, err);
    } else {
        rc = copy_changed(copy, err);
    }
    close(from);
    return rc;
}
