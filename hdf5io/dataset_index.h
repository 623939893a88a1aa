/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset_index: what .cddp-index (index.h) says of the shards of a dataset,
 * which must be in one directory. It is believed of a shard whose size, time of
 * change and inode are those that it had, so it is not believed of a copy. Not
 * used with mpi, and not of shards that refer to other files.
 */
#ifndef CDDP_HDF5IO_DATASET_INDEX_H
#define CDDP_HDF5IO_DATASET_INDEX_H

#include "hdf5io/dataset.h"

/* With fewer shards than this, opening them takes less than an index. */
#define DATASET_INDEX_LEAST 64

/* Read the index, so that hdf5io_dataset_look need not open shards of which it
 * tells. One that is damaged or of other shards is ignored; if [says], a
 * warning names it. Between begin and the first look; local. */
void hdf5io_dataset_index_read(hdf5io_dataset_t *dataset, bool says);

/* What the index tells of shard [shard], if that is believed of it;
 * false: it must be opened. *out is valid until the index is forgotten. */
bool hdf5io_dataset_index_facts(const hdf5io_dataset_t *dataset, int shard,
                                catalogue_facts_t *out);

/* Free what was read of the index. No look follows. */
void hdf5io_dataset_index_forget(hdf5io_dataset_t *dataset);

/* Write the index, durably; sections of other datasets stay in it. All facts
 * are known. ERR_DATA: the shards are in several directories. ERR_IO, as for
 * file_publish. ERR_MEMORY. Local. */
err_code_t hdf5io_dataset_index_write(hdf5io_dataset_t *dataset, err_t *err);

/* Is it worth to write it: many shards, facts that it does not have, and a
 * directory in which that is possible? */
bool hdf5io_dataset_index_due(const hdf5io_dataset_t *dataset);

#endif
