/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dataset_scratch: the buffers of one read in progress. Internal to the files
 * dataset_*.c. */
#ifndef CDDP_HDF5IO_DATASET_SCRATCH_H
#define CDDP_HDF5IO_DATASET_SCRATCH_H

#include "hdf5io/dataset_impl.h"

/* A sample that was asked for, and its place among the samples to deliver. */
typedef struct read_entry {
    int64_t index, slot;
} read_entry_t;

struct read_scratch {
    read_scratch_t *next;
    read_entry_t *entries;
    column_run_t *runs;
    int64_t *slots; /* of the first row of each run */
    int64_t room;   /* capacity of [entries], [runs] and [slots] */
    unsigned char *stage;
    size_t stage_bytes;
    trace_t *trace; /* of this read; NULL: none */
};

/* Bytes of the stage of buffers that no read has used yet. */
size_t hdf5io_read_stage_bytes(const hdf5io_dataset_t *dataset);

/* Get buffers for [count] samples, unused or new ones, and a trace, if one is
 * free. The stage has room for at least one row of each column. ERR_MEMORY. */
err_code_t hdf5io_read_scratch_take(hdf5io_dataset_t *dataset, int64_t count,
                                    read_scratch_t **out, err_t *err);
/* Give back the buffers and the trace. */
void hdf5io_read_scratch_give(hdf5io_dataset_t *dataset,
                              read_scratch_t *scratch);

/* The stage becomes at least [bytes] large; what it held is lost.
 * ERR_MEMORY. */
err_code_t hdf5io_read_stage_grow(read_scratch_t *scratch, size_t bytes,
                                  err_t *err);

/* Sort by index, in place. */
void hdf5io_read_sort(read_entry_t *entries, int64_t count);

#endif
