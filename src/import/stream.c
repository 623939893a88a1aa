/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_MOST (1 << 30) /* gzread counts with an unsigned int */

struct import_stream {
    char *path;
    int fd;           /* -1 where gzip has taken it */
    gzFile gzip;      /* NULL: a plain file */
    import_tap_t tap; /* with functions: they read it, with [state] */
    void *state;
    int64_t size, place;
};

static bool is_gzip(int fd)
{
    unsigned char head[2] = {0};

    return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
           head[0] == 0x1f && head[1] == 0x8b;
}

err_code_t import_stream_open(const char *path, bool unpack,
                              import_stream_t **out, err_t *err)
{
    import_stream_t *stream;
    struct stat status;
    err_code_t rc = mem_new(import_stream_t, 1, "a stream", &stream, err);

    if (rc != ERR_OK)
        return rc;
    stream->fd = -1;
    stream->path = str_dup(path);
    rc = file_open_regular(path, O_RDONLY, FILE_LINKS, &stream->fd, err);
    if (rc != ERR_OK)
        goto out;
    if (fstat(stream->fd, &status) != 0) {
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    stream->size = status.st_size;
    if (unpack && is_gzip(stream->fd)) {
        stream->gzip = gzdopen(stream->fd, "rb");
        if (stream->gzip == NULL)
            rc = err_set(err, ERR_MEMORY, "%s: no memory to unpack it", path);
        else
            stream->fd = -1;
    }
out:
    if (rc != ERR_OK)
        import_stream_close(stream);
    else
        *out = stream;
    return rc;
}

err_code_t import_stream_wrap(const char *path, int64_t size,
                              const import_tap_t *tap, void *state,
                              import_stream_t **out, err_t *err)
{
    import_stream_t *stream;
    err_code_t rc = mem_new(import_stream_t, 1, "a stream", &stream, err);

    if (rc != ERR_OK) {
        tap->close(state);
        return rc;
    }
    stream->fd = -1;
    stream->path = str_dup(path);
    stream->size = size;
    stream->tap = *tap;
    stream->state = state;
    *out = stream;
    return ERR_OK;
}

static err_code_t gzip_read(import_stream_t *stream, char *out, size_t bytes,
                            size_t *got, err_t *err)
{
    size_t done = 0;
    int piece = 1, fault = Z_OK;

    while (done < bytes && piece > 0) {
        const size_t want = bytes - done < READ_MOST ? bytes - done : READ_MOST;

        piece = gzread(stream->gzip, out + done, (unsigned)want);
        done += piece > 0 ? (size_t)piece : 0;
    }
    if (done < bytes)
        gzerror(stream->gzip, &fault);
    *got = done;
    if (fault == Z_ERRNO)
        return err_set(err, ERR_IO, "cannot read %s: %s", stream->path,
                       strerror(errno));
    if (fault == Z_MEM_ERROR)
        return err_set(err, ERR_MEMORY, "%s: no memory to unpack it",
                       stream->path);
    if (fault != Z_OK)
        return err_set(err, ERR_DATA,
                       "%s: this gzip file is %s (after %lld bytes of its "
                       "content); copy it again",
                       stream->path,
                       fault == Z_BUF_ERROR ? "cut at its end" : "damaged",
                       (long long)stream->place + (long long)done);
    return ERR_OK;
}

static err_code_t plain_read(import_stream_t *stream, char *out, size_t bytes,
                             size_t *got, err_t *err)
{
    size_t done = 0;
    ssize_t piece = 1;

    while (done < bytes && piece != 0) {
        const size_t want = bytes - done < READ_MOST ? bytes - done : READ_MOST;

        piece = read(stream->fd, out + done, want);
        if (piece < 0 && errno == EINTR)
            continue;
        if (piece < 0)
            return err_set(err, ERR_IO, "cannot read %s: %s", stream->path,
                           strerror(errno));
        done += (size_t)piece;
    }
    *got = done;
    return ERR_OK;
}

err_code_t import_stream_read(import_stream_t *stream, void *out, size_t bytes,
                              size_t *got, err_t *err)
{
    size_t done = 0;
    err_code_t rc;

    if (stream->tap.read != NULL)
        rc = stream->tap.read(stream->state, out, bytes, &done, err);
    else if (stream->gzip != NULL)
        rc = gzip_read(stream, out, bytes, &done, err);
    else
        rc = plain_read(stream, out, bytes, &done, err);

    if (rc == ERR_OK) {
        stream->place += (int64_t)done;
        *got = done;
    }
    return rc;
}

err_code_t import_stream_exact(import_stream_t *stream, void *out, size_t bytes,
                               const char *what, err_t *err)
{
    size_t got = 0;
    err_code_t rc = import_stream_read(stream, out, bytes, &got, err);

    if (rc == ERR_OK && got < bytes)
        rc = err_set(err, ERR_DATA,
                     "%s: ends at byte %lld, in its %s: %lld bytes are missing",
                     stream->path, (long long)stream->place, what,
                     (long long)(bytes - got));
    return rc;
}

err_code_t import_stream_skip(import_stream_t *stream, int64_t bytes,
                              err_t *err)
{
    char dropped[4096];
    err_code_t rc = ERR_OK;

    if (stream->fd >= 0 && bytes <= stream->size - stream->place &&
        lseek(stream->fd, (off_t)bytes, SEEK_CUR) >= 0) {
        stream->place += bytes;
        return ERR_OK;
    }
    while (bytes > 0 && rc == ERR_OK) {
        const int64_t take =
            bytes < (int64_t)sizeof dropped ? bytes : (int64_t)sizeof dropped;

        rc = import_stream_exact(stream, dropped, (size_t)take, "beginning",
                                 err);
        bytes -= take;
    }
    return rc;
}

err_code_t import_stream_end(import_stream_t *stream, err_t *err)
{
    char more;
    size_t got = 0;
    err_code_t rc = import_stream_read(stream, &more, 1, &got, err);

    if (rc == ERR_OK && got > 0)
        rc = err_set(err, ERR_DATA,
                     "%s: there are bytes after byte %lld, where it should end "
                     "as its header says",
                     stream->path, (long long)stream->place - 1);
    return rc;
}

int64_t import_stream_place(const import_stream_t *stream)
{
    return stream->place;
}

int64_t import_stream_size(const import_stream_t *stream)
{
    return stream->size;
}

bool import_stream_packed(const import_stream_t *stream)
{
    return stream->gzip != NULL;
}

const char *import_stream_path(const import_stream_t *stream)
{
    return stream->path;
}

void import_stream_close(import_stream_t *stream)
{
    if (stream == NULL)
        return;
    if (stream->tap.close != NULL)
        stream->tap.close(stream->state);
    if (stream->gzip != NULL)
        gzclose(stream->gzip);
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->path);
    mem_free(stream);
}
