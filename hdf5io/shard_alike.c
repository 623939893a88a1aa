/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * HDF5 opens a file by the bytes outside of its datasets; it reads no number of
 * a dataset. What it finds depends on these bytes only, unless they name
 * another file. So if two files have the same size, and the same bytes outside
 * of the columns, they have the same columns at the same offsets. All these
 * bytes are compared for each file. The name and the time of a file prove
 * nothing.
 */
#include "hdf5io/shard_alike.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* A file with more bytes outside of its columns is not compared. */
#define OUTSIDE_MAX ((size_t)65536)
/* Maximum number of spans, each of which is one read. */
#define SPANS_MAX 4
/* Most files that may be opened in vain. The first shard may differ from all
 * others, so a second shard is tried. */
#define MISSES_MAX 2

/* A part of a file. */
typedef struct span {
    uint64_t first, end;
} span_t;

struct hdf5io_alike {
    bool known; /* a shard is remembered */
    int misses; /* files that were opened in vain */
    uint64_t bytes;
    int64_t rows;
    int count;
    hdf5io_column_t columns[SHARD_COLUMNS_MAX]; /* closed */
    span_t spans[SPANS_MAX];                    /* outside of the columns */
    int span_count;
    unsigned char outside[OUTSIDE_MAX]; /* the bytes of the spans */
    unsigned char other[OUTSIDE_MAX];   /* the same bytes of another file */
};

/* ---- the parts of a file ------------------------------------------------- */

/* The bytes of the dataset of a located column. */
static span_t column_span(const hdf5io_column_t *column)
{
    const uint64_t skip =
        (uint64_t)column->skip * hdf5io_convert_bytes(column->type);
    const uint64_t first = column->offset - skip;

    return (span_t){first, first + column->stored};
}

static int span_compare(const void *a, const void *b)
{
    const span_t *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Add the span from byte [first] to byte [end] - 1. False: there are too many
 * spans, or too many bytes in them. */
static bool span_add(hdf5io_alike_t *alike, uint64_t first, uint64_t end,
                     size_t *total)
{
    if (first >= end)
        return true;
    if (alike->span_count == SPANS_MAX || end - first > OUTSIDE_MAX - *total)
        return false;
    alike->spans[alike->span_count++] = (span_t){first, end};
    *total += (size_t)(end - first);
    return true;
}

/* List the spans of the file that belong to no column. False: see span_add. */
static bool spans_find(hdf5io_alike_t *alike)
{
    span_t inside[SHARD_COLUMNS_MAX] = {0};
    size_t total = 0;
    uint64_t at = 0;

    for (int k = 0; k < alike->count; k++)
        inside[k] = column_span(&alike->columns[k]);
    qsort(inside, (size_t)alike->count, sizeof inside[0], span_compare);
    for (int k = 0; k < alike->count; k++) {
        if (!span_add(alike, at, inside[k].first, &total))
            return false;
        at = inside[k].end > at ? inside[k].end : at;
    }
    return span_add(alike, at, alike->bytes, &total);
}

/* ---- reading ------------------------------------------------------------- */

static bool span_read(int fd, const span_t *span, unsigned char *out)
{
    uint64_t at = span->first;

    while (at < span->end) {
        const ssize_t got = pread(fd, out, (size_t)(span->end - at), (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        out += got;
        at += (uint64_t)got;
    }
    return true;
}

/* Read all spans of the file [fd] to [out], [OUTSIDE_MAX]. */
static bool spans_read(const hdf5io_alike_t *alike, int fd, unsigned char *out)
{
    for (int i = 0; i < alike->span_count; i++) {
        if (!span_read(fd, &alike->spans[i], out))
            return false;
        out += alike->spans[i].end - alike->spans[i].first;
    }
    return true;
}

/* Does the file [fd] have the remembered bytes outside of the columns? */
static bool spans_equal(hdf5io_alike_t *alike, int fd)
{
    size_t total = 0;

    for (int i = 0; i < alike->span_count; i++)
        total += (size_t)(alike->spans[i].end - alike->spans[i].first);
    return spans_read(alike, fd, alike->other) &&
           memcmp(alike->other, alike->outside, total) == 0;
}

/* ---- learning ------------------------------------------------------------ */

/* Is each column contiguous, and in the file of the shard itself? */
static bool shard_suits(const hdf5io_shard_t *shard)
{
    if (shard->fd < 0 || shard->file >= 0)
        return false;
    for (int k = 0; k < shard->count; k++) {
        const hdf5io_column_t *column = &shard->columns[k];

        if (!column->located || column->elsewhere || column->stored == 0)
            return false;
    }
    return true;
}

void hdf5io_alike_learn(const hdf5io_shard_t *shard, hdf5io_alike_t **alike)
{
    hdf5io_alike_t *self = *alike;

    if ((self != NULL && (self->known || self->misses == MISSES_MAX)) ||
        !shard_suits(shard) ||
        (self == NULL &&
         mem_new(hdf5io_alike_t, 1, "a shard", &self, NULL) != ERR_OK))
        return;
    *alike = self;
    self->bytes = shard->bytes;
    self->rows = shard->rows;
    self->count = shard->count;
    self->span_count = 0;
    for (int k = 0; k < shard->count; k++) {
        self->columns[k] = shard->columns[k];
        self->columns[k].dataset = H5I_INVALID_HID;
        self->columns[k].memory = H5I_INVALID_HID;
        self->columns[k].fd = -1;
    }
    self->known =
        spans_find(self) && spans_read(self, shard->fd, self->outside);
}

void hdf5io_alike_close(hdf5io_alike_t *alike)
{
    mem_free(alike);
}

/* ---- opening ------------------------------------------------------------- */

/* Is [path] a regular file of the remembered size? Opening a pipe would wait
 * for its writer, so this is found out before [path] is opened. */
static bool size_equal(const hdf5io_alike_t *alike, const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size == alike->bytes;
}

/* Set the columns of the open shard to the remembered ones. */
static bool columns_copy(const hdf5io_alike_t *alike, const char *path,
                         hdf5io_shard_t *shard)
{
    if (hdf5io_shard_columns_make(shard, alike->count, NULL) != ERR_OK)
        return false;
    for (int k = 0; k < alike->count; k++) {
        shard->columns[k] = alike->columns[k];
        shard->columns[k].file = path;
    }
    shard->rows = alike->rows;
    shard->place =
        hdf5io_shard_place(shard->device, shard->inode, alike->count);
    shard->open = true;
    return true;
}

bool hdf5io_alike_open(hdf5io_alike_t *alike,
                       const hdf5io_shard_config_t *config, const char *path,
                       hdf5io_shard_t *out)
{
    hdf5io_shard_t shard;
    bool opened;

    if (alike == NULL || !alike->known || config->count != alike->count ||
        !size_equal(alike, path))
        return false;
    hdf5io_shard_init(&shard);
    shard.path = path;
    opened = hdf5io_shard_plain(&shard, NULL) == ERR_OK &&
             shard.bytes == alike->bytes;
    if (opened && !spans_equal(alike, shard.fd)) {
        alike->known = false;
        alike->misses++;
        opened = false;
    }
    if (opened && columns_copy(alike, path, &shard)) {
        *out = shard;
        return true;
    }
    hdf5io_shard_rest(&shard);
    return false;
}
