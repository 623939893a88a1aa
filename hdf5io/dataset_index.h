/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset_index: reads and writes the facts of the shards of a dataset in
 * .cddp-index (index.h). All these shards must be in one directory. The facts
 * of a shard are used only if its size, time of change and inode are still the
 * same. So they are not used for a copy of a shard. They are not used with mpi
 * either, nor for shards that refer to other files.
 */
#ifndef CDDP_HDF5IO_DATASET_INDEX_H
#define CDDP_HDF5IO_DATASET_INDEX_H

#include "hdf5io/dataset.h"

/* With fewer shards than this a run writes no index: opening all of them takes
 * little time. */
#define DATASET_INDEX_LEAST 64

/* Read the index, so that hdf5io_dataset_look need not open the shards whose
 * facts are in it. An index of other shards is ignored. A damaged index is
 * ignored, too; if [says], a warning names it. To be called between begin and
 * the first look. Local. */
void hdf5io_dataset_index_read(hdf5io_dataset_t *dataset, bool says);

/* The facts of shard [shard] in the index. False: there are none, or the shard
 * has changed since; so it must be opened. *out is valid until the index is
 * forgotten. */
bool hdf5io_dataset_index_facts(const hdf5io_dataset_t *dataset, int shard,
                                catalogue_facts_t *out);

/* Free what was read of the index. No look follows. */
void hdf5io_dataset_index_forget(hdf5io_dataset_t *dataset);

/* Write the index, durably. Sections of other datasets stay in it as long as it
 * has at most 1 GiB; else the sections that were written first are dropped. All
 * facts must be known. ERR_DATA: the shards are in several directories, or
 * their facts alone take more than 1 GiB. ERR_IO, as for file_publish.
 * ERR_MEMORY. Local. */
err_code_t hdf5io_dataset_index_write(hdf5io_dataset_t *dataset, err_t *err);

/* Shall the index be written? There are many shards, the index does not have
 * the facts of all, and their directory is writable. */
bool hdf5io_dataset_index_due(const hdf5io_dataset_t *dataset);

#endif
