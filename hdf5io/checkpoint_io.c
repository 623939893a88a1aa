/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Linux moves at most 2 GiB - 4 KiB in one call; a smaller bite lets a killed
 * process end sooner. */
#define WRITE_MAX ((size_t)256 << 20)

static ssize_t system_write_at(void *context, int fd, const void *bytes,
                               size_t count, off_t offset)
{
    (void)context;
    return pwrite(fd, bytes, count, offset);
}

static int system_sync(void *context, int fd)
{
    (void)context;
    return fsync(fd);
}

static int system_rename(void *context, const char *from, const char *to,
                         unsigned flags)
{
    (void)context;
    if (flags == 0)
        return rename(from, to);
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

const hdf5io_io_t hdf5io_io_system = {
    .write_at = system_write_at,
    .sync = system_sync,
    .rename = system_rename,
};

err_code_t hdf5io_io_write(const hdf5io_io_t *io, int fd, const char *path,
                           const void *bytes, size_t count, off_t offset,
                           err_t *err)
{
    const char *next = bytes;

    while (count > 0) {
        size_t bite = count < WRITE_MAX ? count : WRITE_MAX;
        ssize_t done = io->write_at(io->context, fd, next, bite, offset);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_set(err, ERR_IO, "%s: write failed: %s", path,
                           done == 0 ? "nothing was taken" : strerror(errno));
        next += done;
        offset += done;
        count -= (size_t)done;
    }
    return ERR_OK;
}

err_code_t hdf5io_io_flush(const hdf5io_io_t *io, int fd, const char *path,
                           err_t *err)
{
    int rc;

    do
        rc = io->sync(io->context, fd);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return err_set(err, ERR_IO, "%s: fsync failed: %s", path,
                       strerror(errno));
    return ERR_OK;
}

err_code_t hdf5io_io_create(const hdf5io_io_t *io, const char *path,
                            const void *bytes, size_t count, err_t *err)
{
    err_code_t code;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return err_set(err, ERR_IO, "%s: cannot create: %s", path,
                       strerror(errno));
    code = hdf5io_io_write(io, fd, path, bytes, count, 0, err);
    if (code == ERR_OK)
        code = hdf5io_io_flush(io, fd, path, err);
    if (close(fd) != 0 && code == ERR_OK)
        code =
            err_set(err, ERR_IO, "%s: close failed: %s", path, strerror(errno));
    return code;
}

err_code_t hdf5io_io_sync(const hdf5io_io_t *io, const char *path, err_t *err)
{
    err_code_t code;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "%s: cannot open to fsync: %s", path,
                       strerror(errno));
    code = hdf5io_io_flush(io, fd, path, err);
    close(fd);
    return code;
}

err_code_t hdf5io_io_rename(const hdf5io_io_t *io, const char *from,
                            const char *to, err_t *err)
{
    if (io->rename(io->context, from, to, 0) != 0)
        return err_set(err, ERR_IO, "cannot rename %s to %s: %s", from, to,
                       strerror(errno));
    return ERR_OK;
}
