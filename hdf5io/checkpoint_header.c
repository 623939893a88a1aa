/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * HDF5 opens the memory by the link /proc/self/fd/N. The default driver of HDF5
 * would resolve the link, but a memfd has no path. The driver for C streams
 * opens the link itself.
 */
#include "hdf5io/checkpoint_header.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "hdf5io/h5.h"

err_code_t hdf5io_header_open(const char *path, hdf5io_header_t *out,
                              err_t *err)
{
    char name[64];
    hid_t access;

    *out = (hdf5io_header_t){
        .path = str_dup(path), .fd = -1, .file = H5I_INVALID_HID};
    out->fd = memfd_create("cddp-header", MFD_CLOEXEC);
    if (out->fd < 0)
        return err_set(err, ERR_IO, "%s: no memory for its headers: %s", path,
                       strerror(errno));
    snprintf(name, sizeof name, "/proc/self/fd/%d", out->fd);
    access = h5_access_list();
    if (access >= 0 && H5Pset_fapl_stdio(access) >= 0)
        out->file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0)
        H5Pclose(access);
    if (out->file < 0)
        return h5_err_set(err, ERR_IO, "%s: cannot make its headers in memory",
                          path);
    return ERR_OK;
}

/* The error number for a file that could not be closed; [last]: errno after
 * that. The memory has the size of the whole shard, so a limit of the size of
 * files (RLIMIT_FSIZE) applies to it. */
static int close_reason(int last)
{
    struct rlimit limit;

    if (last == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        return EFBIG;
    return last == 0 ? EIO : last;
}

err_code_t hdf5io_header_end(hdf5io_header_t *header, err_code_t rc, err_t *err)
{
    struct stat st;

    h5_lock_check();
    errno = 0;
    if (header->file >= 0 && H5Fclose(header->file) < 0 && rc == ERR_OK)
        rc = h5_err_set(err, ERR_IO, "%s: cannot finish its headers: %s",
                        header->path, strerror(close_reason(errno)));
    header->file = H5I_INVALID_HID;
    if (rc == ERR_OK && fstat(header->fd, &st) != 0)
        rc = err_set(err, ERR_IO, "%s: its headers are lost: %s", header->path,
                     strerror(errno));
    if (rc == ERR_OK)
        header->bytes = (uint64_t)st.st_size;
    return rc;
}

err_code_t hdf5io_header_read(const hdf5io_header_t *header, void *to,
                              size_t count, uint64_t at, err_t *err)
{
    char *next = to;

    while (count > 0) {
        const ssize_t done = pread(header->fd, next, count, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_set(err, ERR_IO, "%s: its headers cannot be read: %s",
                           header->path,
                           done == 0 ? "they are too short" : strerror(errno));
        next += done;
        at += (uint64_t)done;
        count -= (size_t)done;
    }
    return ERR_OK;
}

/* HDF5 keeps the file open if it could not close it. So the memory is freed by
 * truncating it. */
void hdf5io_header_close(hdf5io_header_t *header)
{
    if (header->fd >= 0 && ftruncate(header->fd, 0) != 0)
        log_debug("hdf5io", "%s: its headers stay in memory: %s", header->path,
                  strerror(errno));
    if (header->fd >= 0)
        close(header->fd);
    free(header->path);
    *header = (hdf5io_header_t)HDF5IO_HEADER_NONE;
}
