/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The table of facts. A shape is the columns of a shard; a shard has the number
 * of its shape. */
#include "hdf5io/catalogue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"

/* A shard without facts. */
#define CATALOGUE_UNKNOWN (-1)

typedef struct catalogue_entry {
    uint64_t bytes, inode, place, cached;
    int64_t changed, rows;
    int shape; /* or CATALOGUE_UNKNOWN */
    bool digested;
} catalogue_entry_t;

struct hdf5io_catalogue {
    char **paths;                /* [count] */
    catalogue_entry_t *entries;  /* [count] */
    uint64_t *offsets, *digests; /* [count, fields] */
    int count, fields;
    catalogue_column_t *columns; /* [shapes, fields] */
    int shapes, room;            /* room: shapes that fit into [columns] */
};

err_code_t hdf5io_catalogue_open(char *const *paths, int count, int fields,
                                 hdf5io_catalogue_t **out, err_t *err)
{
    const size_t shards = (size_t)count;
    hdf5io_catalogue_t *made = NULL;
    err_code_t rc;

    check(count >= 0 && fields > 0 && fields <= CATALOGUE_FIELDS_MAX,
          "a catalogue of %d shards with %d columns", count, fields);
    rc = mem_new(hdf5io_catalogue_t, 1, "the list of shards", &made, err);
    if (rc != ERR_OK)
        return rc;
    made->fields = fields;
    rc = mem_new(char *, shards, "the list of shards", &made->paths, err);
    if (rc == ERR_OK)
        rc = mem_new(catalogue_entry_t, shards, "the list of shards",
                     &made->entries, err);
    if (rc == ERR_OK)
        rc = mem_new(uint64_t, shards * (size_t)fields, "the list of shards",
                     &made->offsets, err);
    if (rc == ERR_OK)
        rc = mem_new(uint64_t, shards * (size_t)fields, "the list of shards",
                     &made->digests, err);
    if (rc != ERR_OK) {
        hdf5io_catalogue_close(made);
        return rc;
    }
    made->count = count;
    for (int i = 0; i < count; i++) {
        made->paths[i] = str_dup(paths[i]);
        made->entries[i].shape = CATALOGUE_UNKNOWN;
    }
    *out = made;
    return ERR_OK;
}

void hdf5io_catalogue_close(hdf5io_catalogue_t *catalogue)
{
    if (catalogue == NULL)
        return;
    for (int i = 0; i < catalogue->count; i++)
        free(catalogue->paths[i]);
    mem_free(catalogue->paths);
    mem_free(catalogue->entries);
    mem_free(catalogue->offsets);
    mem_free(catalogue->digests);
    mem_free(catalogue->columns);
    mem_free(catalogue);
}

int hdf5io_catalogue_shards(const hdf5io_catalogue_t *catalogue)
{
    return catalogue->count;
}

int hdf5io_catalogue_fields(const hdf5io_catalogue_t *catalogue)
{
    return catalogue->fields;
}

int hdf5io_catalogue_shapes(const hdf5io_catalogue_t *catalogue)
{
    return catalogue->shapes;
}

int hdf5io_catalogue_shape(const hdf5io_catalogue_t *catalogue, int shard)
{
    check(shard >= 0 && shard < catalogue->count &&
              catalogue->entries[shard].shape != CATALOGUE_UNKNOWN,
          "the shape of shard %d of %d", shard, catalogue->count);
    return catalogue->entries[shard].shape;
}

const char *hdf5io_catalogue_path(const hdf5io_catalogue_t *catalogue,
                                  int shard)
{
    check(shard >= 0 && shard < catalogue->count, "shard %d of %d", shard,
          catalogue->count);
    return catalogue->paths[shard];
}

static bool column_same(const catalogue_column_t *a,
                        const catalogue_column_t *b)
{
    return a->type.kind == b->type.kind && a->type.swap == b->type.swap &&
           a->ndim == b->ndim && a->stream == b->stream && a->skip == b->skip &&
           a->band == b->band && a->files == b->files && a->way == b->way &&
           a->located == b->located && a->linked == b->linked &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

static bool shape_same(const hdf5io_catalogue_t *catalogue, int shape,
                       const catalogue_column_t *columns)
{
    const catalogue_column_t *there =
        &catalogue->columns[(size_t)shape * (size_t)catalogue->fields];

    for (int k = 0; k < catalogue->fields; k++)
        if (!column_same(&there[k], &columns[k]))
            return false;
    return true;
}

/* Make room for another shape. */
static err_code_t shapes_grow(hdf5io_catalogue_t *catalogue, err_t *err)
{
    const size_t fields = (size_t)catalogue->fields;
    const int room = catalogue->room > 0 ? 2 * catalogue->room : 1;
    catalogue_column_t *larger = NULL;
    err_code_t rc;

    if (catalogue->shapes < catalogue->room)
        return ERR_OK;
    rc = mem_new(catalogue_column_t, (size_t)room * fields,
                 "the shapes of shards", &larger, err);
    if (rc != ERR_OK)
        return rc;
    if (catalogue->shapes > 0)
        memcpy(larger, catalogue->columns,
               (size_t)catalogue->shapes * fields * sizeof *larger);
    mem_free(catalogue->columns);
    catalogue->columns = larger;
    catalogue->room = room;
    return ERR_OK;
}

/* Find the number of the shape [columns], or add it. The newest shape comes
 * first, as neighbours are alike. */
static err_code_t shape_number(hdf5io_catalogue_t *catalogue,
                               const catalogue_column_t *columns, int *out,
                               err_t *err)
{
    const size_t fields = (size_t)catalogue->fields;
    err_code_t rc;

    for (int s = catalogue->shapes; s-- > 0;)
        if (shape_same(catalogue, s, columns)) {
            *out = s;
            return ERR_OK;
        }
    rc = shapes_grow(catalogue, err);
    if (rc != ERR_OK)
        return rc;
    *out = catalogue->shapes++;
    memcpy(&catalogue->columns[(size_t)*out * fields], columns,
           fields * sizeof *columns);
    return ERR_OK;
}

/* Do the facts of the known shard [shard] equal [facts]? Places are not
 * compared: they depend on the host that opened the file. */
static bool facts_same(const hdf5io_catalogue_t *catalogue, int shard,
                       const catalogue_facts_t *facts)
{
    const catalogue_entry_t *entry = &catalogue->entries[shard];
    const size_t fields = (size_t)catalogue->fields;

    return entry->bytes == facts->bytes && entry->changed == facts->changed &&
           entry->inode == facts->inode && entry->rows == facts->rows &&
           entry->cached == facts->cached &&
           shape_same(catalogue, entry->shape, facts->columns) &&
           memcmp(&catalogue->offsets[(size_t)shard * fields], facts->offsets,
                  fields * sizeof *facts->offsets) == 0 &&
           entry->digested == facts->digested &&
           (!entry->digested ||
            memcmp(&catalogue->digests[(size_t)shard * fields], facts->digests,
                   fields * sizeof *facts->digests) == 0);
}

err_code_t hdf5io_catalogue_set(hdf5io_catalogue_t *catalogue, int shard,
                                const catalogue_facts_t *facts, err_t *err)
{
    catalogue_entry_t *entry = &catalogue->entries[shard];
    const size_t fields = (size_t)catalogue->fields;
    int shape = CATALOGUE_UNKNOWN;
    err_code_t rc;

    check(shard >= 0 && shard < catalogue->count, "shard %d of %d", shard,
          catalogue->count);
    if (entry->shape != CATALOGUE_UNKNOWN) {
        if (facts_same(catalogue, shard, facts))
            return ERR_OK;
        return err_set(err, ERR_DATA,
                       "%s differs between two looks at it (%" PRIu64
                       " bytes and %" PRId64 " samples, then %" PRIu64
                       " bytes and %" PRId64
                       " samples): it is being written, or ranks see "
                       "different files",
                       catalogue->paths[shard], entry->bytes, entry->rows,
                       facts->bytes, facts->rows);
    }
    rc = shape_number(catalogue, facts->columns, &shape, err);
    if (rc != ERR_OK)
        return rc;
    *entry = (catalogue_entry_t){.bytes = facts->bytes,
                                 .inode = facts->inode,
                                 .place = facts->place,
                                 .cached = facts->cached,
                                 .changed = facts->changed,
                                 .rows = facts->rows,
                                 .shape = shape,
                                 .digested = facts->digested};
    memcpy(&catalogue->digests[(size_t)shard * fields], facts->digests,
           fields * sizeof *facts->digests);
    memcpy(&catalogue->offsets[(size_t)shard * fields], facts->offsets,
           fields * sizeof *facts->offsets);
    return ERR_OK;
}

bool hdf5io_catalogue_get(const hdf5io_catalogue_t *catalogue, int shard,
                          catalogue_facts_t *out)
{
    const catalogue_entry_t *entry = &catalogue->entries[shard];
    const size_t fields = (size_t)catalogue->fields;

    check(shard >= 0 && shard < catalogue->count, "shard %d of %d", shard,
          catalogue->count);
    if (entry->shape == CATALOGUE_UNKNOWN)
        return false;
    *out = (catalogue_facts_t){
        .bytes = entry->bytes,
        .changed = entry->changed,
        .inode = entry->inode,
        .place = entry->place,
        .rows = entry->rows,
        .cached = entry->cached,
        .columns = &catalogue->columns[(size_t)entry->shape * fields],
        .digested = entry->digested};
    memcpy(out->digests, &catalogue->digests[(size_t)shard * fields],
           fields * sizeof *out->digests);
    memcpy(out->offsets, &catalogue->offsets[(size_t)shard * fields],
           fields * sizeof *out->offsets);
    return true;
}

int hdf5io_catalogue_missing(const hdf5io_catalogue_t *catalogue)
{
    int i = 0;

    while (i < catalogue->count &&
           catalogue->entries[i].shape != CATALOGUE_UNKNOWN)
        i++;
    return i;
}
