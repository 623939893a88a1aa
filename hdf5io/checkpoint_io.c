/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes per call: few enough to call [alive] several times a second on a slow
 * disk, and enough for full speed. */
#define BITE_MAX ((size_t)16 << 20)

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

static int system_reserve(void *context, int fd, off_t bytes)
{
    (void)context;
    return fallocate(fd, 0, 0, bytes);
}

/* No flag that waits is used: a call that waits would get an error of the
 * write-back, and the fsync that follows would not get it any more. */
static void system_push(void *context, int fd, off_t first, off_t bytes)
{
    (void)context;
    (void)sync_file_range(fd, first, bytes, SYNC_FILE_RANGE_WRITE);
}

static int system_open(void *context, const char *path, int flags)
{
    (void)context;
    return open(path, flags);
}

static ssize_t system_read_at(void *context, int fd, void *bytes, size_t count,
                              off_t offset)
{
    (void)context;
    return pread(fd, bytes, count, offset);
}

static void system_forget(void *context, int fd)
{
    (void)context;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

const hdf5io_io_t hdf5io_io_system = {
    .write_at = system_write_at,
    .sync = system_sync,
    .rename = system_rename,
    .reserve = system_reserve,
    .push = system_push,
    .open = system_open,
    .read_at = system_read_at,
    .forget = system_forget,
};

hdf5io_io_t hdf5io_io_of(const hdf5io_checkpoint_config_t *config)
{
    hdf5io_io_t io = config->io != NULL ? *config->io : hdf5io_io_system;

    if (io.reserve == NULL)
        io.reserve = system_reserve;
    if (io.push == NULL)
        io.push = system_push;
    if (io.open == NULL)
        io.open = system_open;
    if (io.read_at == NULL)
        io.read_at = system_read_at;
    if (io.forget == NULL)
        io.forget = system_forget;
    io.alive = config->votes->alive;
    io.alive_context = config->votes->context;
    io.retry_seconds = config->retry_seconds;
    return io;
}

static void io_alive(const hdf5io_io_t *io)
{
    if (io->alive != NULL)
        io->alive(io->alive_context);
}

err_code_t hdf5io_io_reserve(const hdf5io_io_t *io, int fd, const char *path,
                             uint64_t bytes, err_t *err)
{
    int status;

    if (bytes == 0)
        return ERR_OK;
    do
        status = io->reserve(io->context, fd, (off_t)bytes);
    while (status != 0 && errno == EINTR);
    io_alive(io);
    /* Some file systems cannot reserve space, or only on some servers. */
    if (status == 0 || errno == EOPNOTSUPP || errno == ENOSYS ||
        errno == EINVAL)
        return ERR_OK;
    return err_set(err, ERR_IO, "%s: cannot reserve its %llu bytes: %s", path,
                   (unsigned long long)bytes, strerror(errno));
}

err_code_t hdf5io_io_write(const hdf5io_io_t *io, int fd, const char *path,
                           const hdf5io_io_data_t *data, err_t *err)
{
    const char *next = data->bytes;
    size_t count = data->count;
    off_t offset = data->offset;

    while (count > 0) {
        size_t bite = count < BITE_MAX ? count : BITE_MAX;
        ssize_t done = io->write_at(io->context, fd, next, bite, offset);

        io_alive(io);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_set(err, ERR_IO, "%s: write failed: %s", path,
                           done == 0 ? "no byte was written" : strerror(errno));
        next += done;
        offset += done;
        count -= (size_t)done;
    }
    return ERR_OK;
}

err_code_t hdf5io_io_flush(const hdf5io_io_t *io, int fd, const char *path,
                           err_t *err)
{
    int status;

    do
        status = io->sync(io->context, fd);
    while (status != 0 && errno == EINTR);
    if (status != 0)
        return err_set(err, ERR_IO, "%s: fsync failed: %s", path,
                       strerror(errno));
    return ERR_OK;
}

err_code_t hdf5io_io_create(const hdf5io_io_t *io, const char *path,
                            const void *bytes, size_t count, err_t *err)
{
    err_code_t rc;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return err_set(err, ERR_IO, "%s: cannot create: %s", path,
                       strerror(errno));
    rc = hdf5io_io_write(io, fd, path, &(hdf5io_io_data_t){bytes, count, 0},
                         err);
    if (rc == ERR_OK)
        rc = hdf5io_io_flush(io, fd, path, err);
    if (close(fd) != 0 && rc == ERR_OK)
        rc =
            err_set(err, ERR_IO, "%s: close failed: %s", path, strerror(errno));
    return rc;
}

err_code_t hdf5io_io_sync(const hdf5io_io_t *io, const char *path, err_t *err)
{
    err_t why = ERR_INIT;
    struct stat st;
    err_code_t rc;
    /* Non-blocking: [path] may be a pipe by mistake; open must not wait. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return err_set(err, ERR_IO, "%s: cannot open to fsync: %s", path,
                       strerror(errno));
    rc = hdf5io_io_flush(io, fd, path, &why);
    /* Some file systems cannot sync directories. */
    if (rc != ERR_OK && errno == EINVAL && fstat(fd, &st) == 0 &&
        S_ISDIR(st.st_mode))
        rc = ERR_OK;
    close(fd);
    return rc == ERR_OK ? ERR_OK : err_copy(err, &why);
}

err_code_t hdf5io_io_rename(const hdf5io_io_t *io, const char *from,
                            const char *to, err_t *err)
{
    if (io->rename(io->context, from, to, 0) != 0)
        return err_set(err, ERR_IO, "cannot rename %s to %s: %s", from, to,
                       strerror(errno));
    return ERR_OK;
}
