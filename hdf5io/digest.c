/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/digest.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"

/* Bytes per read of a full digest; more if one row is larger. */
#define DIGEST_STAGE_BYTES ((size_t)4 << 20)

int64_t hdf5io_dataset_shard_samples(const hdf5io_dataset_t *dataset, int shard)
{
    return dataset->shards[shard].rows;
}

const char *hdf5io_dataset_field_path(const hdf5io_dataset_t *dataset,
                                      int field)
{
    return dataset->fields[field].path;
}

size_t hdf5io_dataset_row_bytes(const hdf5io_dataset_t *dataset, int field)
{
    return hdf5io_dataset_columns(dataset, &dataset->shards[0])[field]
        .row_bytes;
}

uint64_t hdf5io_dataset_place(const hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();
    uint64_t place;

    for (int s = 0; s < dataset->count; s++)
        hash_state_add(state, &dataset->shards[s].place,
                       sizeof dataset->shards[s].place);
    place = hash_state_value(state);
    hash_state_free(state);
    return place;
}

uint64_t hdf5io_dataset_shape(const hdf5io_dataset_t *dataset, int shard)
{
    const hdf5io_shard_t *from = &dataset->shards[shard];
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, from);
    hash_state_t *state = hash_state_open();
    uint64_t shape;

    hash_state_add(state, &from->rows, sizeof from->rows);
    for (int k = 0; k < from->count; k++) {
        const hdf5io_column_t *column = &columns[k];
        const int32_t numbers[] = {(int32_t)column->type.kind,
                                   column->type.swap ? 1 : 0, column->ndim};

        hash_state_add(state, numbers, sizeof numbers);
        hash_state_add(state, column->dims,
                       (size_t)column->ndim * sizeof column->dims[0]);
    }
    shape = hash_state_value(state);
    hash_state_free(state);
    return shape;
}

static err_code_t digest_all(const hdf5io_shard_t *shard, int field,
                             const hdf5io_digest_how_t *how,
                             hash_state_t *state, err_t *err)
{
    hdf5io_column_t column = shard->columns[field];
    const int64_t block = column.row_bytes < DIGEST_STAGE_BYTES
                              ? (int64_t)(DIGEST_STAGE_BYTES / column.row_bytes)
                              : 1;
    void *stage = NULL;
    err_code_t rc = mem_alloc((size_t)block * column.row_bytes,
                              "looking at the data", &stage, err);
    int number;

    column.collective = false;
    for (int64_t row = 0; row < column.rows && rc == ERR_OK; row += block) {
        const int64_t left = column.rows - row;
        const column_run_t run = {.row = row,
                                  .count = left < block ? left : block};
        const column_rows_t rows = {.runs = &run, .count = 1, .fd = shard->fd};
        const size_t bytes = (size_t)run.count * column.row_bytes;

        rc = hdf5io_column_read(&column, &rows, stage, err);
        if (rc != ERR_OK)
            break;
        hash_state_add(state, stage, bytes);
        if (how->alive != NULL)
            how->alive(how->context, (int64_t)bytes);
    }
    number = errno;
    mem_free(stage);
    errno = number;
    return rc;
}

/* Get the digest of a sample from the catalogue. False: it is not known, or all
 * numbers are asked for. */
static bool digest_known(const hdf5io_dataset_t *dataset, int shard, int field,
                         const hdf5io_digest_how_t *how, uint64_t *out)
{
    catalogue_facts_t facts;

    if (how->full || !hdf5io_catalogue_get(dataset->catalogue, shard, &facts) ||
        !facts.digested)
        return false;
    *out = facts.digests[field];
    return true;
}

/* Arguments and result of digest_work. */
typedef struct digest_call {
    const hdf5io_dataset_t *dataset;
    const hdf5io_shard_t *shard;
    int field;
    const hdf5io_digest_how_t *how;
    uint64_t value;
} digest_call_t;

static err_code_t digest_work(void *context, err_t *err)
{
    digest_call_t *call = context;
    const bool twice =
        call->shard->columns[call->field].stream > 0 && call->field > 0;
    hash_state_t *state;
    err_code_t rc;
    int number;

    if (!call->how->full || twice)
        return hdf5io_shard_digest(call->shard, call->field,
                                   call->dataset->count, &call->value, err);
    state = hash_state_open();
    rc = digest_all(call->shard, call->field, call->how, state, err);
    number = errno;
    call->value = hash_state_value(state);
    hash_state_free(state);
    errno = number;
    return rc;
}

err_code_t hdf5io_dataset_digest(hdf5io_dataset_t *dataset, int shard,
                                 int field, const hdf5io_digest_how_t *how,
                                 uint64_t *out, err_t *err)
{
    digest_call_t call = {.dataset = dataset,
                          .shard = &dataset->shards[shard],
                          .field = field,
                          .how = how,
                          .value = hash_bytes(NULL, 0)};
    err_code_t rc = ERR_OK;

    if (digest_known(dataset, shard, field, how, out))
        return ERR_OK;
    if (call.shard->rows > 0)
        rc = hdf5io_dataset_use(dataset, &dataset->shards[shard], digest_work,
                                &call, err);
    if (rc == ERR_OK)
        *out = call.value;
    return rc;
}
