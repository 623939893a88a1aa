/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset_stage: reads the shards of a dataset from their copies (stage.h), as
 * soon as these are there. A copy has the same bytes at the same places as its
 * shard, so the facts of the shard stay true. If a shard is read by pread, only
 * the descriptor is exchanged, also while other threads read. A shard that HDF5
 * reads is closed when no thread reads it, and its copy is opened.
 *
 * If a copy cannot be read, the shard is read from its own place again: errors
 * of copies never become errors of the dataset.
 */
#ifndef CDDP_HDF5IO_DATASET_STAGE_H
#define CDDP_HDF5IO_DATASET_STAGE_H

#include "hdf5io/dataset.h"
#include "hdf5io/stage.h"

/* Fill files[shards] for the stage. A shard that refers to other files is not
 * wanted, as HDF5 looks for these files beside the shard. A shard without
 * samples is not wanted either. */
void hdf5io_dataset_stage_files(const hdf5io_dataset_t *dataset,
                                stage_file_t *files);

/* From now on, read shards from their copies in [stage], where shard 0 is file
 * [first]. [stage] must stay open until the dataset is closed. Not while a read
 * is in progress; not with mpi. */
void hdf5io_dataset_stage(hdf5io_dataset_t *dataset, hdf5io_stage_t *stage,
                          int first);

/* ---- for dataset_use.c; the dataset's lock is held ----------------------- */

struct hdf5io_shard;

/* Is there a copy of [shard] that this process does not use yet? */
bool hdf5io_dataset_copy_due(const hdf5io_dataset_t *dataset,
                             const struct hdf5io_shard *shard);

/* Open the copy of the closed shard [shard] with these facts, if there is one.
 * False: the shard stays closed, and the caller opens its own file. */
bool hdf5io_dataset_copy_open(hdf5io_dataset_t *dataset,
                              const catalogue_facts_t *facts,
                              struct hdf5io_shard *shard);

/* From now on, read the open shard [shard], of which HDF5 has nothing open,
 * from its copy. Threads that are reading the shard go on. */
void hdf5io_dataset_copy_take(hdf5io_dataset_t *dataset,
                              struct hdf5io_shard *shard);

/* Never use the copy of [shard] again: a read from it failed, with [err]. */
void hdf5io_dataset_copy_leave(hdf5io_dataset_t *dataset,
                               struct hdf5io_shard *shard, const err_t *err);

#endif
