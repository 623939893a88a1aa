/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Packed facts. All numbers have 8 bytes, the lowest first:
 *
 *     mark; number of shards of the dataset; columns of each; shards that
 * follow for each of these: its number, bytes, changed, inode, place, rows,
 * cached; the offset of each column; 1 and the digest of each column, or 0 if
 *         they are not known; 1 if its columns follow, or 0 if they are those
 *         of the shard before
 *     for each column: kind, swap, stream, skip, band, files, way, located,
 *         linked, ndim, and the dimensions
 *
 * A reader trusts nothing: the bytes may come from a file (index.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/little.h"
#include "base/mem.h"
#include "hdf5io/catalogue.h"

#define PACK_MARK UINT64_C(0x3154414350444443) /* "CDDPCAT1" */
#define PACK_NUMBER 8                          /* bytes */

/* ---- writing ------------------------------------------------------------- */

typedef struct pack_out {
    unsigned char *next; /* NULL: only count */
    size_t bytes;
} pack_out_t;

static void put(pack_out_t *out, uint64_t number)
{
    if (out->next != NULL) {
        little_put(out->next, number, PACK_NUMBER);
        out->next += PACK_NUMBER;
    }
    out->bytes += PACK_NUMBER;
}

static void column_put(pack_out_t *out, const catalogue_column_t *column)
{
    put(out, (uint64_t)column->type.kind);
    put(out, column->type.swap);
    put(out, (uint64_t)column->stream);
    put(out, (uint64_t)column->skip);
    put(out, (uint64_t)column->band);
    put(out, (uint64_t)column->files);
    put(out, (uint64_t)column->way);
    put(out, column->located);
    put(out, column->linked);
    put(out, (uint64_t)column->ndim);
    for (int d = 0; d < column->ndim; d++)
        put(out, column->dims[d]);
}

static void shard_put(pack_out_t *out, int shard, int fields,
                      const catalogue_facts_t *facts, bool alike)
{
    put(out, (uint64_t)shard);
    put(out, facts->bytes);
    put(out, (uint64_t)facts->changed);
    put(out, facts->inode);
    put(out, facts->place);
    put(out, (uint64_t)facts->rows);
    put(out, facts->cached);
    for (int k = 0; k < fields; k++)
        put(out, facts->offsets[k]);
    put(out, facts->digested);
    for (int k = 0; k < fields && facts->digested; k++)
        put(out, facts->digests[k]);
    put(out, !alike);
    for (int k = 0; k < fields && !alike; k++)
        column_put(out, &facts->columns[k]);
}

/* Write everything; returns the number of shards. [count]: the result of an
 * earlier call, which only counted. */
static uint64_t all_put(const hdf5io_catalogue_t *catalogue, int first,
                        int step, uint64_t count, pack_out_t *out)
{
    const int shards = hdf5io_catalogue_shards(catalogue);
    const int fields = hdf5io_catalogue_fields(catalogue);
    const catalogue_column_t *columns = NULL;
    catalogue_facts_t facts;
    uint64_t found = 0;

    put(out, PACK_MARK);
    put(out, (uint64_t)shards);
    put(out, (uint64_t)fields);
    put(out, count);
    for (int i = first; i < shards; i += step) {
        if (!hdf5io_catalogue_get(catalogue, i, &facts))
            continue;
        shard_put(out, i, fields, &facts, facts.columns == columns);
        columns = facts.columns;
        found++;
    }
    return found;
}

err_code_t hdf5io_catalogue_pack(const hdf5io_catalogue_t *catalogue, int first,
                                 int step, void **out, size_t *bytes,
                                 err_t *err)
{
    pack_out_t counted = {0}, written = {0};
    void *packed = NULL;
    uint64_t count;
    err_code_t rc;

    check(first >= 0 && step > 0, "shards from %d on by steps of %d", first,
          step);
    count = all_put(catalogue, first, step, 0, &counted);
    rc = mem_alloc(counted.bytes, "the list of shards", &packed, err);
    if (rc != ERR_OK)
        return rc;
    written.next = packed;
    all_put(catalogue, first, step, count, &written);
    check(written.bytes == counted.bytes, "%zu bytes were written, not %zu",
          written.bytes, counted.bytes);
    *out = packed;
    *bytes = written.bytes;
    return ERR_OK;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct pack_in {
    const unsigned char *next;
    size_t left;
    bool bad; /* a number was missing or impossible */
} pack_in_t;

/* The next number; 0 if none is left. */
static uint64_t take(pack_in_t *in)
{
    uint64_t number;

    if (in->left < PACK_NUMBER) {
        in->bad = true;
        return 0;
    }
    number = little_get(in->next, PACK_NUMBER);
    in->next += PACK_NUMBER;
    in->left -= PACK_NUMBER;
    return number;
}

/* The next number, which must be at most [most]; else 0. */
static uint64_t take_to(pack_in_t *in, uint64_t most)
{
    const uint64_t number = take(in);

    if (number <= most)
        return number;
    in->bad = true;
    return 0;
}

/* Take a column. A sample has 1 to INT32_MAX numbers, as in column.c. */
static void column_take(pack_in_t *in, catalogue_column_t *out)
{
    uint64_t elems = 1;

    *out = (catalogue_column_t){0};
    out->type.kind = (convert_kind_t)take_to(in, CONVERT_KINDS - 1);
    out->type.swap = take_to(in, 1) != 0;
    out->stream = (int64_t)take_to(in, INT32_MAX);
    out->skip = (int64_t)take_to(in, 1);
    out->band = (int64_t)take_to(in, INT64_MAX);
    out->files = (int)take_to(in, INT32_MAX);
    out->way = (hdf5io_way_t)take_to(in, HDF5IO_WAYS - 1);
    out->located = take_to(in, 1) != 0;
    out->linked = take_to(in, 1) != 0;
    out->ndim = (int)take_to(in, CATALOGUE_DIMS_MAX);
    for (int d = 0; d < out->ndim; d++) {
        out->dims[d] = take_to(in, INT32_MAX);
        if (out->dims[d] == 0 || elems * out->dims[d] > INT32_MAX)
            in->bad = true;
        else
            elems *= out->dims[d];
    }
    if (out->stream > 0 &&
        (out->ndim != 1 || out->dims[0] != (uint64_t)out->stream))
        in->bad = true;
}

/* Are the rows of a located column within its file? */
static bool column_inside(const catalogue_column_t *column, uint64_t offset,
                          const catalogue_facts_t *facts)
{
    uint64_t end = hdf5io_convert_bytes(column->type);

    if (!column->located || column->linked)
        return true;
    for (int d = 0; d < column->ndim; d++)
        end *= column->dims[d];
    return !__builtin_mul_overflow(end, (uint64_t)facts->rows, &end) &&
           !__builtin_add_overflow(end, offset, &end) && end <= facts->bytes;
}

/* Take the facts of a shard. [columns] are those of the shard before, if there
 * is one, and become those of this shard. */
static void facts_take(pack_in_t *in, int fields, bool second,
                       catalogue_column_t *columns, catalogue_facts_t *out)
{
    *out = (catalogue_facts_t){.columns = columns};
    out->bytes = take_to(in, INT64_MAX);
    out->changed = (int64_t)take(in);
    out->inode = take(in);
    out->place = take(in);
    out->rows = (int64_t)take_to(in, INT64_MAX);
    out->cached = take_to(in, INT64_MAX);
    for (int k = 0; k < fields; k++)
        out->offsets[k] = take_to(in, INT64_MAX);
    out->digested = take_to(in, 1) != 0;
    for (int k = 0; k < fields && out->digested; k++)
        out->digests[k] = take(in);
    if (take_to(in, 1) == 0)
        in->bad = in->bad || !second;
    else
        for (int k = 0; k < fields; k++)
            column_take(in, &columns[k]);
    for (int k = 0; k < fields && !in->bad; k++)
        in->bad = !column_inside(&columns[k], out->offsets[k], out);
}

static err_code_t pack_refuse(const hdf5io_catalogue_t *catalogue, err_t *err)
{
    const int shards = hdf5io_catalogue_shards(catalogue);

    return err_set(err, ERR_DATA,
                   "facts of the shards from %s on are damaged, or of other "
                   "shards than these %d",
                   shards > 0 ? hdf5io_catalogue_path(catalogue, 0) : "none",
                   shards);
}

err_code_t hdf5io_catalogue_merge(hdf5io_catalogue_t *catalogue,
                                  const void *packed, size_t bytes, err_t *err)
{
    const uint64_t shards = (uint64_t)hdf5io_catalogue_shards(catalogue);
    const int fields = hdf5io_catalogue_fields(catalogue);
    catalogue_column_t columns[CATALOGUE_FIELDS_MAX];
    pack_in_t in = {.next = packed, .left = bytes};
    uint64_t count;
    err_code_t rc = ERR_OK;

    if (take(&in) != PACK_MARK || take(&in) != shards ||
        take(&in) != (uint64_t)fields)
        in.bad = true;
    count = take_to(&in, shards);
    for (uint64_t i = 0; i < count && rc == ERR_OK && !in.bad; i++) {
        const uint64_t shard = take_to(&in, shards - 1);
        catalogue_facts_t facts;

        facts_take(&in, fields, i > 0, columns, &facts);
        if (!in.bad)
            rc = hdf5io_catalogue_set(catalogue, (int)shard, &facts, err);
    }
    if (rc == ERR_OK && (in.bad || in.left > 0))
        rc = pack_refuse(catalogue, err);
    return rc;
}
