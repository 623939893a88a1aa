/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/dataset_scratch.h"

#include "base/check.h"
#include "base/mem.h"

/* Bytes per read; more if one row is larger. */
#define READ_STAGE_BYTES ((size_t)1 << 20)

void hdf5io_read_scratch_free(read_scratch_t *scratch)
{
    while (scratch != NULL) {
        read_scratch_t *next = scratch->next;

        mem_free(scratch->stage);
        mem_free(scratch->slots);
        mem_free(scratch->runs);
        mem_free(scratch->entries);
        mem_free(scratch);
        scratch = next;
    }
}

size_t hdf5io_read_stage_bytes(const hdf5io_dataset_t *dataset)
{
    return dataset->row_bytes > READ_STAGE_BYTES ? dataset->row_bytes
                                                 : READ_STAGE_BYTES;
}

err_code_t hdf5io_read_stage_grow(read_scratch_t *scratch, size_t bytes,
                                  err_t *err)
{
    void *stage;
    err_code_t rc;

    if (bytes <= scratch->stage_bytes)
        return ERR_OK;
    rc = mem_alloc(bytes, "reading samples", &stage, err);
    if (rc != ERR_OK)
        return rc;
    mem_free(scratch->stage);
    scratch->stage = stage;
    scratch->stage_bytes = bytes;
    return ERR_OK;
}

static err_code_t read_room_grow(read_scratch_t *scratch, int64_t count,
                                 err_t *err)
{
    const size_t room = (size_t)count;
    read_entry_t *entries = NULL;
    column_run_t *runs = NULL;
    int64_t *slots = NULL;
    err_code_t rc;

    if (count <= scratch->room)
        return ERR_OK;
    rc = mem_new(read_entry_t, room, "sample numbers", &entries, err);
    if (rc == ERR_OK)
        rc = mem_new(column_run_t, room, "runs of samples", &runs, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, room, "runs of samples", &slots, err);
    if (rc != ERR_OK) {
        mem_free(runs);
        mem_free(entries);
        return rc;
    }
    mem_free(scratch->slots);
    mem_free(scratch->entries);
    mem_free(scratch->runs);
    scratch->entries = entries;
    scratch->runs = runs;
    scratch->slots = slots;
    scratch->room = count;
    return ERR_OK;
}

void hdf5io_read_scratch_give(hdf5io_dataset_t *dataset,
                              read_scratch_t *scratch)
{
    pthread_mutex_lock(&dataset->lock);
    for (int i = 0; i < dataset->trace_count; i++)
        if (dataset->traces[i] == scratch->trace)
            dataset->traced &= ~(UINT64_C(1) << i);
    scratch->next = dataset->scratch;
    dataset->scratch = scratch;
    pthread_mutex_unlock(&dataset->lock);
}

/* Get a trace that no other read uses; NULL: there is none. */
static trace_t *read_trace_take(hdf5io_dataset_t *dataset)
{
    trace_t *trace = NULL;

    if (dataset->trace_count == 0)
        return NULL;
    pthread_mutex_lock(&dataset->lock);
    for (int i = 0; i < dataset->trace_count && trace == NULL; i++)
        if ((dataset->traced & UINT64_C(1) << i) == 0) {
            dataset->traced |= UINT64_C(1) << i;
            trace = dataset->traces[i];
        }
    pthread_mutex_unlock(&dataset->lock);
    return trace;
}

err_code_t hdf5io_read_scratch_take(hdf5io_dataset_t *dataset, int64_t count,
                                    read_scratch_t **out, err_t *err)
{
    read_scratch_t *scratch;
    err_code_t rc = ERR_OK;

    pthread_mutex_lock(&dataset->lock);
    scratch = dataset->scratch;
    if (scratch != NULL)
        dataset->scratch = scratch->next;
    pthread_mutex_unlock(&dataset->lock);
    if (scratch == NULL)
        rc = mem_new(read_scratch_t, 1, "reading samples", &scratch, err);
    if (rc != ERR_OK)
        return rc;
    rc = hdf5io_read_stage_grow(scratch, hdf5io_read_stage_bytes(dataset), err);
    if (rc == ERR_OK)
        rc = read_room_grow(scratch, count, err);
    scratch->trace = read_trace_take(dataset);
    if (rc != ERR_OK) {
        hdf5io_read_scratch_give(dataset, scratch);
        return rc;
    }
    *out = scratch;
    return ERR_OK;
}

static void read_sift(read_entry_t *entries, int64_t root, int64_t count)
{
    read_entry_t moved = entries[root];

    for (;;) {
        int64_t child = 2 * root + 1;

        if (child >= count)
            break;
        if (child + 1 < count &&
            entries[child + 1].index > entries[child].index)
            child++;
        if (entries[child].index <= moved.index)
            break;
        entries[root] = entries[child];
        root = child;
    }
    entries[root] = moved;
}

static bool read_sorted(const read_entry_t *entries, int64_t count)
{
    int64_t i = 1;

    while (i < count && entries[i - 1].index <= entries[i].index)
        i++;
    return i >= count;
}

/* Heap sort, since it works in place and qsort may allocate. Sorted input takes
 * one pass. */
void hdf5io_read_sort(read_entry_t *entries, int64_t count)
{
    int64_t i;

    if (read_sorted(entries, count))
        return;
    for (i = count / 2; i-- > 0;)
        read_sift(entries, i, count);
    for (i = count; i-- > 1;) {
        read_entry_t largest = entries[0];

        entries[0] = entries[i];
        entries[i] = largest;
        read_sift(entries, 0, i);
    }
    check(read_sorted(entries, count), "%lld entries are not sorted",
          (long long)count);
}
