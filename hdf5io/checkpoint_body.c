/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/mem.h"

/* Bytes that are hashed and written at a time: they fit into a cache. */
#define BITE ((size_t)256 << 10)
/* Bytes whose write-back is begun together. */
#define PUSH ((uint64_t)8 << 20)
/* Maximum bytes between two fsyncs. A single fsync at the end could take longer
 * than a rank may go without calling [alive]. */
#define DIRTY_MAX ((uint64_t)1 << 30)

/* ---- spans --------------------------------------------------------------- */

static int span_compare(const void *a, const void *b)
{
    const hdf5io_span_t *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

void hdf5io_spans_sort(hdf5io_span_t *spans, size_t count)
{
    if (count > 1)
        qsort(spans, count, sizeof *spans, span_compare);
}

size_t hdf5io_spans_gaps(const hdf5io_span_t *spans, size_t count,
                         uint64_t bytes, hdf5io_span_t *out)
{
    uint64_t at = 0;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const hdf5io_span_t *span = &spans[i];

        check(span->at >= at && span->bytes <= bytes - span->at,
              "bytes %llu to %llu after %llu of %llu",
              (unsigned long long)span->at,
              (unsigned long long)(span->at + span->bytes),
              (unsigned long long)at, (unsigned long long)bytes);
        if (span->at > at)
            out[n++] = (hdf5io_span_t){.at = at, .bytes = span->at - at};
        at = span->at + span->bytes;
    }
    if (at < bytes)
        out[n++] = (hdf5io_span_t){.at = at, .bytes = bytes - at};
    return n;
}

/* ---- writing ------------------------------------------------------------- */

typedef struct writing {
    const hdf5io_body_t *body;
    int fd;
    size_t span;     /* number of the span with the next byte */
    uint64_t at;     /* offset of this byte in the file */
    uint64_t pushed; /* the write-back of the bytes before this one has begun */
    uint64_t dirty;  /* bytes that were written since the last fsync */
    char *bite;      /* [BITE] */
    hdf5io_summing_t *summing; /* NULL: nothing is hashed */
} writing_t;

/* Bytes of the current span from byte [at] of the file on. */
static uint64_t span_left(const writing_t *w, uint64_t at)
{
    const hdf5io_span_t *span = &w->body->spans[w->span];

    return span->at + span->bytes - at;
}

/* Copy the next [count] bytes, of several spans or of the header, to [bite]. */
static err_code_t bite_gather(writing_t *w, size_t count, err_t *err)
{
    size_t done = 0;
    err_code_t rc = ERR_OK;

    while (done < count && rc == ERR_OK) {
        const uint64_t at = w->at + done, left = span_left(w, at);
        const size_t run = left < count - done ? (size_t)left : count - done;
        const hdf5io_span_t *span = &w->body->spans[w->span];

        if (span->data == NULL)
            rc = hdf5io_header_read(w->body->header, w->bite + done, run, at,
                                    err);
        else
            memcpy(w->bite + done, span->data + (at - span->at), run);
        done += run;
        if (run == left)
            w->span++;
    }
    return rc;
}

/* Set *out to the next [count] bytes: in the tensor, if one span has all of
 * them; otherwise they are copied to [bite]. */
static err_code_t bite_take(writing_t *w, size_t count, const char **out,
                            err_t *err)
{
    const hdf5io_span_t *span = &w->body->spans[w->span];

    if (span->data == NULL || span_left(w, w->at) < count) {
        *out = w->bite;
        return bite_gather(w, count, err);
    }
    *out = span->data + (w->at - span->at);
    if (span_left(w, w->at) == count)
        w->span++;
    return ERR_OK;
}

/* Number of bytes of the next bite: those before the next gap, at most BITE. */
static size_t bite_bytes(const writing_t *w)
{
    const hdf5io_body_t *body = w->body;
    uint64_t bytes = span_left(w, w->at);

    for (size_t i = w->span + 1; i < body->count && bytes < BITE; i++) {
        if (body->spans[i].at != w->at + bytes)
            break;
        bytes += body->spans[i].bytes;
    }
    return bytes < BITE ? (size_t)bytes : BITE;
}

/* [count] more bytes are written. Begin the write-back after each PUSH bytes,
 * and wait for it after each DIRTY_MAX bytes. */
static err_code_t written_push(writing_t *w, size_t count, err_t *err)
{
    const hdf5io_body_t *body = w->body;
    err_code_t rc = ERR_OK;

    w->at += count;
    w->dirty += count;
    if (w->at - w->pushed >= PUSH) {
        body->io->push(body->io->context, w->fd, (off_t)w->pushed,
                       (off_t)(w->at - w->pushed));
        w->pushed = w->at;
    }
    if (w->dirty >= DIRTY_MAX) {
        rc = hdf5io_io_flush(body->io, w->fd, body->path, err);
        w->dirty = 0;
    }
    return rc;
}

static err_code_t bites_write(writing_t *w, err_t *err)
{
    const hdf5io_body_t *body = w->body;
    err_code_t rc = ERR_OK;

    while (w->span < body->count && rc == ERR_OK) {
        const char *from = NULL;
        size_t count;

        if (w->at < body->spans[w->span].at)
            w->at = body->spans[w->span].at;
        count = bite_bytes(w);
        rc = bite_take(w, count, &from, err);
        if (rc != ERR_OK)
            return rc;
        if (w->summing != NULL)
            hdf5io_summing_add(w->summing, from, count);
        rc = hdf5io_io_write(body->io, w->fd, body->path,
                             &(hdf5io_io_data_t){from, count, (off_t)w->at},
                             err);
        if (rc == ERR_OK)
            rc = written_push(w, count, err);
    }
    return rc;
}

static err_code_t file_close(int fd, const char *path, err_code_t rc,
                             err_t *err)
{
    if (close(fd) != 0 && rc == ERR_OK)
        rc =
            err_set(err, ERR_IO, "%s: close failed: %s", path, strerror(errno));
    return rc;
}

err_code_t hdf5io_body_create(const hdf5io_io_t *io, const char *path,
                              uint64_t bytes, err_t *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return err_set(err, ERR_IO, "%s: cannot create: %s", path,
                       strerror(errno));
    return file_close(fd, path, hdf5io_io_reserve(io, fd, path, bytes, err),
                      err);
}

static err_code_t file_write(writing_t *w, err_t *err)
{
    const hdf5io_body_t *body = w->body;
    err_code_t rc =
        file_open_regular(body->path, O_WRONLY, FILE_OWN, &w->fd, err);

    if (rc != ERR_OK)
        return rc;
    rc = bites_write(w, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_flush(body->io, w->fd, body->path, err);
    return file_close(w->fd, body->path, rc, err);
}

err_code_t hdf5io_body_write(const hdf5io_body_t *body, hdf5io_sums_t *sums,
                             err_t *err)
{
    writing_t w = {.body = body};
    err_code_t rc = mem_new(char, BITE, "writing a checkpoint", &w.bite, err);

    if (rc == ERR_OK && sums != NULL)
        rc = hdf5io_summing_open(sums->bytes, sums->block_bytes, &w.summing,
                                 err);
    if (rc == ERR_OK)
        rc = file_write(&w, err);
    if (rc == ERR_OK && sums != NULL)
        hdf5io_summing_end(w.summing, sums);
    mem_free(w.bite);
    hdf5io_summing_close(w.summing);
    return rc;
}
