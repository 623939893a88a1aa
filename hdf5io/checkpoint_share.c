/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The runs are those that hdf5io_manifest_build plans for the rank's shard, in
 * the same order. checkpoint_shard.c checks that. */
#include "hdf5io/checkpoint_share.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_manifest.h"

typedef struct share_run {
    int tensor;
    int64_t first, count;
    const float *data; /* in the tensor's memory */
    int64_t at;        /* elements of the runs before this one */
} share_run_t;

struct hdf5io_share {
    float *buffer; /* [elems]; NULL: there is none */
    int64_t elems;
    int count;
    share_run_t runs[]; /* [count] */
};

/* ---- listing ------------------------------------------------------------- */

/* A list of runs that grows; [runs] NULL: they are only counted. */
typedef struct list {
    share_run_t *runs;
    int count;
    int64_t elems;
} list_t;

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

static int64_t common_of(const hdf5io_tensor_t *tensors, int count)
{
    int64_t elems = 0;

    for (int i = 0; i < count; i++)
        if (tensors[i].parts == NULL)
            elems += elems_of(&tensors[i]);
    return elems;
}

static void run_add(list_t *list, int tensor, int64_t first, int64_t count,
                    const float *data)
{
    if (list->runs != NULL)
        list->runs[list->count] =
            (share_run_t){tensor, first, count, data, list->elems};
    list->count++;
    list->elems += count;
}

static void parts_add(list_t *list, int number, const hdf5io_tensor_t *tensor,
                      int rank)
{
    for (int p = 0; p < tensor->part_count; p++) {
        const hdf5io_part_t *part = &tensor->parts[p];

        if (part->rank == rank)
            run_add(list, number, part->first, part->count, part->data);
    }
}

/* List the runs of [rank]. Of the tensors that all ranks hold, these are the
 * overlaps with its share [from, to) of their elements. */
static void runs_list(list_t *list, const hdf5io_tensor_t *tensors, int count,
                      int rank, int size)
{
    int64_t from, to, at = 0;

    hdf5io_manifest_share(common_of(tensors, count), rank, size, &from, &to);
    for (int i = 0; i < count; i++) {
        const int64_t elems = elems_of(&tensors[i]);
        int64_t first, last;

        if (tensors[i].parts != NULL) {
            parts_add(list, i, &tensors[i], rank);
            continue;
        }
        first = from > at ? from - at : 0;
        last = to - at < elems ? to - at : elems;
        if (first < last)
            run_add(list, i, first, last - first,
                    tensors[i].data == NULL ? NULL : tensors[i].data + first);
        at += elems;
    }
}

/* ---- the object ---------------------------------------------------------- */

err_code_t hdf5io_share_open(const hdf5io_tensor_t *tensors, int count,
                             int rank, int size, hdf5io_share_t **out,
                             err_t *err)
{
    hdf5io_share_t *share = NULL;
    list_t list = {0};
    err_code_t rc;

    runs_list(&list, tensors, count, rank, size);
    rc = mem_new_tail(hdf5io_share_t, runs, (size_t)list.count,
                      "the share of a checkpoint", &share, err);
    if (rc != ERR_OK)
        return rc;
    list = (list_t){.runs = share->runs};
    runs_list(&list, tensors, count, rank, size);
    share->count = list.count;
    share->elems = list.elems;
    *out = share;
    return ERR_OK;
}

void hdf5io_share_close(hdf5io_share_t *share)
{
    if (share == NULL)
        return;
    mem_free(share->buffer);
    mem_free(share);
}

err_code_t hdf5io_share_buffer(hdf5io_share_t *share, err_t *err)
{
    return mem_new(float, (size_t)share->elems, "the copy for checkpoints",
                   &share->buffer, err);
}

int64_t hdf5io_share_elems(const hdf5io_share_t *share)
{
    return share->elems;
}

int64_t hdf5io_share_before(const hdf5io_share_t *share, int tensor)
{
    for (int i = 0; i < share->count; i++)
        if (share->runs[i].tensor >= tensor)
            return share->runs[i].at;
    return share->elems;
}

/* The run that has element [at] of the share; the number of runs if none has.
 */
static int run_find(const hdf5io_share_t *share, int64_t at)
{
    int low = 0, high = share->count;

    while (low < high) {
        const int middle = low + (high - low) / 2;
        const share_run_t *run = &share->runs[middle];

        if (run->at + run->count <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hdf5io_share_copy(hdf5io_share_t *share, int64_t first, int64_t last)
{
    check(first >= 0 && last <= share->elems,
          "elements %lld to %lld of a share of %lld", (long long)first,
          (long long)last, (long long)share->elems);
    if (share->buffer == NULL)
        return;
    for (int i = run_find(share, first); first < last; i++) {
        const share_run_t *run = &share->runs[i];
        const int64_t end = run->at + run->count;
        const int64_t to = last < end ? last : end;

        memcpy(share->buffer + first, run->data + (first - run->at),
               (size_t)(to - first) * sizeof(float));
        first = to;
    }
}

int hdf5io_share_runs(const hdf5io_share_t *share)
{
    return share->count;
}

hdf5io_run_t hdf5io_share_run(const hdf5io_share_t *share, int index)
{
    const share_run_t *run;

    check(index >= 0 && index < share->count, "run %d of %d", index,
          share->count);
    run = &share->runs[index];
    return (hdf5io_run_t){
        .tensor = run->tensor,
        .first = run->first,
        .count = run->count,
        .data = share->buffer == NULL ? run->data : share->buffer + run->at};
}
