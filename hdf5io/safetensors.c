/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian"
#endif

#define HEAD_BYTES sizeof(uint64_t)
/* Of one pread: Linux reads at most 2 GiB. */
#define READ_BYTES ((size_t)1 << 30)

/* Read [bytes] bytes from byte [at] on. */
static err_code_t bytes_read(const hdf5io_safe_t *file, void *out, size_t bytes,
                             uint64_t at, err_t *err)
{
    char *next = out;
    ssize_t got;

    while (bytes > 0) {
        got = pread(file->fd, next, bytes < READ_BYTES ? bytes : READ_BYTES,
                    (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, ERR_IO, "cannot read %s: %s", file->path,
                           strerror(errno));
        if (got == 0)
            return err_set(err, ERR_DATA,
                           "%s was cut off while it was read: its byte %llu is "
                           "missing",
                           file->path, (unsigned long long)at);
        next += got;
        at += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return ERR_OK;
}

static err_code_t map_read(hdf5io_safe_t *file, uint64_t bytes, err_t *err)
{
    unsigned char head[HEAD_BYTES] = {0};
    uint64_t length;
    char *text = NULL;
    err_code_t rc;

    rc =
        bytes_read(file, head, bytes < HEAD_BYTES ? bytes : HEAD_BYTES, 0, err);
    if (rc != ERR_OK)
        return rc;
    rc = hdf5io_safe_length(head, bytes, &length, err);
    if (rc == ERR_OK)
        rc = mem_new(char, length, "the map of a file", &text, err);
    if (rc == ERR_OK)
        rc = bytes_read(file, text, length, HEAD_BYTES, err);
    if (rc == ERR_OK)
        rc = hdf5io_safe_parse(text, length, bytes - HEAD_BYTES - length, file,
                               err);
    if (rc == ERR_OK)
        file->begin = HEAD_BYTES + length;
    mem_free(text);
    if (rc == ERR_DATA)
        err_prefix(err, "%s is no safetensors file", file->path);
    return rc;
}

err_code_t hdf5io_safe_open(const char *path, hdf5io_safe_t *out, err_t *err)
{
    hdf5io_safe_t file = {.fd = -1};
    struct stat info;
    err_code_t rc =
        file_open_regular(path, O_RDONLY, FILE_LINKS, &file.fd, err);

    if (rc != ERR_OK)
        return rc;
    file.path = str_dup(path);
    if (fstat(file.fd, &info) != 0)
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    if (rc == ERR_OK)
        rc = map_read(&file, (uint64_t)info.st_size, err);
    if (rc != ERR_OK)
        hdf5io_safe_close(&file);
    else
        *out = file;
    return rc;
}

err_code_t hdf5io_safe_read(const hdf5io_safe_t *file, int index, float *out,
                            err_t *err)
{
    const hdf5io_safe_tensor_t *tensor = &file->tensors[index];

    if (tensor->type != HDF5IO_SAFE_F32)
        return err_set(err, ERR_DATA,
                       "%s: tensor %s has the type %s: expected F32; convert "
                       "it to float32 where the file was written",
                       file->path, tensor->name,
                       hdf5io_safe_type_name(tensor->type));
    return bytes_read(file, out, tensor->bytes, file->begin + tensor->offset,
                      err);
}
