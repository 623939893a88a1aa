/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dataset_tell: what a dataset tells of how it reads. Thread rule: that of
 * dataset.h. */
#ifndef CDDP_HDF5IO_DATASET_TELL_H
#define CDDP_HDF5IO_DATASET_TELL_H

#include <stdint.h>

#include "base/str.h"
#include "hdf5io/dataset.h"
#include "hdf5io/way.h"

/* The most bytes that decoded chunks and short rows will take in memory: the
 * bound for them, or less if all fit into less. */
uint64_t hdf5io_dataset_chunks_most(const hdf5io_dataset_t *dataset);

/* The most bytes that the decoded chunks of any [units] units (units.h) need,
 * plus the bytes of short rows that are kept; UINT64_MAX if they cannot be
 * counted. 0: no data is chunked, or units is 0. */
uint64_t hdf5io_dataset_units_most(const hdf5io_dataset_t *dataset,
                                   int64_t units);
/* Bytes of the buffers of [reads] reads at a time. Each read puts samples into
 * a buffer as they are stored. */
uint64_t hdf5io_dataset_stages(const hdf5io_dataset_t *dataset, int reads);
/* The bound for decoded chunks. */
uint64_t hdf5io_dataset_chunks_bound(const hdf5io_dataset_t *dataset);

/* The HDF5 dataset of field [field], for example "/x". Fields are numbered as
 * in dataset.h. */
const char *hdf5io_dataset_path(const hdf5io_dataset_t *dataset, int field);

/* counts[way] becomes the number of shards from which field [field] is read in
 * this way; shards without samples do not count. */
void hdf5io_dataset_ways(const hdf5io_dataset_t *dataset, int field,
                         int counts[HDF5IO_WAYS]);

/* Append what is done to the samples of field [field]: "; the model gets (x -
 * mean) / std, 3 channels; channels first". Nothing if they are delivered as
 * stored. */
void hdf5io_dataset_transform_say(const hdf5io_dataset_t *dataset, int field,
                                  str_buf_t *out);

/* What reading has cost so far, in all threads. */
typedef struct hdf5io_reads {
    /* Bytes read from files. HDF5 does not tell how many it reads: of its reads
     * the bytes of samples count. */
    int64_t bytes;
    double decode_s; /* seconds of decoding chunks without HDF5 */
    int64_t retries; /* tries beyond the first one, as storage refused */
} hdf5io_reads_t;

hdf5io_reads_t hdf5io_dataset_reads(const hdf5io_dataset_t *dataset);

#endif
