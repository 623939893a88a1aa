/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reads ahead, sample by sample. If cddp decodes the chunks of a field, they
 * are read into the pool. For other fields the system is told what will be
 * read. If all samples of a unit are read soon, the system is told of the whole
 * unit at once, since one large read takes less time than many small reads. A
 * small table has the units of which the system was told.
 */
#include "hdf5io/dataset_ahead.h"

#include "base/check.h"
#include "hdf5io/dataset_impl.h"

/* The system is told of a unit again after this number of batches. */
#define TOLD_BATCHES 64

/* Is field [field] of the shard read without the pool, from known places? */
static bool ahead_direct(const hdf5io_dataset_t *dataset,
                         const hdf5io_shard_t *shard, int field)
{
    const hdf5io_way_t way = hdf5io_dataset_columns(dataset, shard)[field].way;

    return (way == HDF5IO_WAY_PREAD || way == HDF5IO_WAY_ROWS) &&
           !dataset->banded[field];
}

/* Find out what reading ahead can do for the shard. [units]: see
 * hdf5io_dataset_plan. */
static void plan_shard(hdf5io_dataset_t *dataset, const hdf5io_shard_t *shard,
                       int64_t most, int64_t units)
{
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);
    const size_t bound = hdf5io_pool_bound(dataset->pool);
    const uint64_t unit =
        (uint64_t)hdf5io_dataset_unit_of(dataset, shard) * (uint64_t)units;
    uint64_t row = 0;

    for (int k = 0; k < dataset->field_count; k++) {
        dataset->ahead.fills |= hdf5io_way_decodes(columns[k].way);
        if (ahead_direct(dataset, shard, k))
            row += columns[k].row_bytes;
    }
    if (row == 0)
        return;
    if (bound / row / (uint64_t)most < (uint64_t)dataset->ahead.most)
        dataset->ahead.most = (int64_t)(bound / row / (uint64_t)most);
    dataset->ahead.units = dataset->ahead.units && unit <= bound / row;
}

void hdf5io_dataset_plan(hdf5io_dataset_t *dataset, int64_t most, int64_t units)
{
    dataset->ahead.fills = false;
    dataset->ahead.most = POOL_AHEAD;
    dataset->ahead.units = units > 0;
    for (int s = 0; s < dataset->count; s++)
        if (dataset->shards[s].rows > 0)
            plan_shard(dataset, &dataset->shards[s], most > 0 ? most : 1,
                       units);
    atomic_store(&dataset->ahead.done, 1);
    for (size_t i = 0; i < AHEAD_TOLD; i++)
        dataset->ahead.told[i] = (struct ahead_told){.batch = -TOLD_BATCHES};
    hdf5io_pool_plan(dataset->pool);
}

void hdf5io_dataset_plan_done(hdf5io_dataset_t *dataset, int64_t batch)
{
    atomic_store(&dataset->ahead.done, batch);
    hdf5io_pool_plan_done(dataset->pool, (uint64_t)batch);
}

bool hdf5io_dataset_ahead_helps(hdf5io_dataset_t *dataset)
{
    return dataset->mpi == NULL &&
           (dataset->ahead.fills || slow_is(&dataset->slow));
}

/* The shard of sample [index]. */
static hdf5io_shard_t *ahead_shard(const hdf5io_dataset_t *dataset,
                                   int64_t index)
{
    int low = 0, high = dataset->count - 1;

    /* the last shard that begins at or before the sample */
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;

        if (dataset->shards[middle].first <= index)
            low = middle;
        else
            high = middle - 1;
    }
    check(index >= dataset->shards[low].first &&
              index - dataset->shards[low].first < dataset->shards[low].rows,
          "sample %lld in shard %d", (long long)index, low);
    return &dataset->shards[low];
}

/* One sample for one batch. */
typedef struct ahead_call {
    hdf5io_dataset_t *dataset;
    hdf5io_shard_t *shard;
    int64_t batch, row;
    bool full;
} ahead_call_t;

/* Was the system told lately of the unit that begins at row [unit]? If not, the
 * caller tells it now, which is noted here. */
static bool ahead_knows(const ahead_call_t *call, int field, int64_t unit)
{
    hdf5io_dataset_t *dataset = call->dataset;
    const uint64_t owner = hdf5io_dataset_owner(dataset, call->shard, field);
    const uint64_t key = owner << 40 ^ (uint64_t)unit;
    struct ahead_told *told =
        &dataset->ahead
             .told[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (AHEAD_TOLD - 1)];
    bool knows;

    pthread_mutex_lock(&dataset->lock);
    knows = told->key == key && call->batch - told->batch < TOLD_BATCHES;
    *told = (struct ahead_told){.key = key, .batch = call->batch};
    pthread_mutex_unlock(&dataset->lock);
    return knows;
}

/* The unit of field [field] that contains the row. Rows in chunks are stored
 * one after the other only within a chunk. */
static column_run_t ahead_unit(const ahead_call_t *call, int field)
{
    const hdf5io_shard_t *shard = call->shard;
    const hdf5io_column_t *column = &shard->columns[field];
    const int64_t unit = column->way == HDF5IO_WAY_ROWS
                             ? column->band
                             : hdf5io_dataset_unit_of(call->dataset, shard);
    const int64_t first = call->row / unit * unit, rest = shard->rows - first;

    return (column_run_t){first, rest < unit ? rest : unit};
}

/* Tell the system that the row, or its unit, will be read. */
static err_code_t ahead_tell(void *context, err_t *err)
{
    const ahead_call_t *call = context;
    hdf5io_dataset_t *dataset = call->dataset;
    const hdf5io_shard_t *shard = call->shard;

    (void)err;
    for (int k = 0; k < dataset->field_count; k++) {
        const bool direct = ahead_direct(dataset, shard, k);
        column_run_t run = {call->row, 1};

        if (!direct && !hdf5io_way_decodes(shard->columns[k].way))
            continue;
        if (direct && dataset->ahead.units)
            run = ahead_unit(call, k);
        if (run.count > 1 && ahead_knows(call, k, run.row))
            continue;
        hdf5io_column_tell(&shard->columns[k], shard->fd, &run);
        slow_told(&dataset->slow);
    }
    return ERR_OK;
}

/* Read the chunks of the row into the pool. */
static err_code_t ahead_fill(void *context, err_t *err)
{
    ahead_call_t *call = context;
    const hdf5io_shard_t *shard = call->shard;
    const column_rows_t from = {.fd = shard->fd, .slow = &call->dataset->slow};

    (void)err;
    for (int k = 0; k < call->dataset->field_count && !call->full; k++)
        call->full = !hdf5io_column_ahead(&shard->columns[k], &from, call->row,
                                          (uint64_t)call->batch);
    return ERR_OK;
}

int64_t hdf5io_dataset_ahead(hdf5io_dataset_t *dataset, int64_t batch,
                             const int64_t *index, int64_t count)
{
    const bool fills = dataset->ahead.fills;
    ahead_call_t call = {.dataset = dataset, .batch = batch};

    if (batch - atomic_load(&dataset->ahead.done) > dataset->ahead.most)
        return 0;
    for (int64_t i = 0; i < count && slow_is(&dataset->slow); i++) {
        call.shard = ahead_shard(dataset, index[i]);
        call.row = index[i] - call.shard->first;
        hdf5io_dataset_try(dataset, call.shard, false, ahead_tell, &call);
    }
    for (int64_t i = 0; i < count && fills; i++) {
        call.shard = ahead_shard(dataset, index[i]);
        call.row = index[i] - call.shard->first;
        hdf5io_dataset_try(dataset, call.shard, true, ahead_fill, &call);
        if (call.full)
            return i;
    }
    return count;
}
