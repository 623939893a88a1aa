/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Between a shard and its facts in a catalogue. What a closed shard says about
 * its columns is what reading needs to plan; everything that depends on open
 * files is found anew when the shard is opened. */
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/shard.h"

_Static_assert(H5S_MAX_RANK <= CATALOGUE_DIMS_MAX, "dimensions");
_Static_assert(sizeof(hsize_t) == sizeof(uint64_t), "dimensions");

void hdf5io_shard_init(hdf5io_shard_t *shard)
{
    *shard = (hdf5io_shard_t){
        .fd = -1, .file = H5I_INVALID_HID, .joined = H5I_INVALID_HID};
}

err_code_t hdf5io_shard_columns_make(hdf5io_shard_t *shard, int count,
                                     err_t *err)
{
    err_code_t rc = mem_new(hdf5io_column_t, (size_t)count,
                            "the columns of a shard", &shard->columns, err);

    if (rc != ERR_OK)
        return rc;
    shard->count = count;
    for (int k = 0; k < count; k++)
        shard->columns[k] = (hdf5io_column_t){
            .fd = -1, .dataset = H5I_INVALID_HID, .memory = H5I_INVALID_HID};
    return ERR_OK;
}

void hdf5io_shard_facts(const hdf5io_shard_t *shard,
                        catalogue_column_t *columns, catalogue_facts_t *out)
{
    check(shard->open && shard->count <= CATALOGUE_FIELDS_MAX,
          "facts of %s: open %d, %d columns", shard->path, shard->open,
          shard->count);
    *out = (catalogue_facts_t){.bytes = shard->bytes,
                               .changed = shard->changed,
                               .inode = shard->inode,
                               .place = shard->place,
                               .rows = shard->rows,
                               .cached = shard->cached,
                               .columns = columns};
    for (int k = 0; k < shard->count; k++) {
        const hdf5io_column_t *column = &shard->columns[k];

        columns[k] = (catalogue_column_t){.type = column->type,
                                          .ndim = column->ndim,
                                          .stream = column->stream,
                                          .skip = column->skip,
                                          .band = column->band,
                                          .files = column->files,
                                          .way = column->way,
                                          .located = column->located,
                                          .linked = column->elsewhere};
        memcpy(columns[k].dims, column->dims,
               (size_t)column->ndim * sizeof column->dims[0]);
        out->offsets[k] = column->located ? column->offset : 0;
    }
}

/* Set what [column] says while it is closed. */
static void column_fill(const catalogue_column_t *from, int64_t rows,
                        hdf5io_column_t *column)
{
    column->type = from->type;
    column->ndim = from->ndim;
    column->stream = from->stream;
    column->skip = from->skip;
    column->band = from->band;
    column->files = from->files;
    column->way = from->way;
    column->located = from->located;
    column->rows = rows;
    column->elems = 1;
    for (int d = 0; d < from->ndim; d++) {
        column->dims[d] = from->dims[d];
        column->elems *= (int64_t)from->dims[d];
    }
    column->row_bytes =
        (size_t)column->elems * hdf5io_convert_bytes(from->type);
}

void hdf5io_shard_columns_fill(const hdf5io_shard_config_t *config,
                               const char *path, const catalogue_facts_t *facts,
                               hdf5io_column_t *columns)
{
    for (int k = 0; k < config->count; k++) {
        column_fill(&facts->columns[k], facts->rows, &columns[k]);
        columns[k].file = path;
        columns[k].path = config->paths[k];
        columns[k].offset = facts->offsets[k];
    }
}
