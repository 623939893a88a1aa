/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * MPI-IO. Each rank first opens all shards for itself, so that errors, on one
 * rank or on all, are found without a collective call. Then all ranks open the
 * shards together, for the columns that HDF5 can read collectively. Other
 * columns (virtual or compact datasets, chunks that were never written) are
 * read through each rank's own open file.
 */
#include <string.h>

#include "base/hash.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/h5.h"

/* Hash of everything that must be equal on all ranks for collective calls. */
static uint64_t dataset_agree_hash(const hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();
    uint64_t hash;

    for (int i = 0; i < dataset->count; i++) {
        const hdf5io_shard_t *shard = &dataset->shards[i];

        hash_state_add(state, shard->path, strlen(shard->path) + 1);
        hash_state_add(state, &shard->bytes, sizeof shard->bytes);
        hash_state_add(state, &shard->rows, sizeof shard->rows);
        for (int k = 0; k < shard->count; k++)
            hash_state_add(state, &shard->columns[k].collective,
                           sizeof shard->columns[k].collective);
    }
    hash = hash_state_value(state);
    hash_state_free(state);
    return hash;
}

err_code_t hdf5io_dataset_join(hdf5io_dataset_t *dataset, h5mpi_t *mpi,
                               err_code_t rc, err_t *err)
{
    const uint64_t hash = rc == ERR_OK ? dataset_agree_hash(dataset) : 0;
    hid_t access;

    if (!h5mpi_same(mpi, hash) && rc == ERR_OK)
        return err_set(err, ERR_DATA,
                       "other ranks see other shards than this one (%d, the "
                       "first is %s), or none: is the directory shared by all "
                       "nodes?",
                       dataset->count, dataset->shards[0].path);
    if (rc != ERR_OK)
        return rc;
    h5_lock();
    access = h5mpi_access_list_read(mpi);
    h5_unlock();
    for (int i = 0; i < dataset->count && rc == ERR_OK; i++)
        rc = hdf5io_shard_join(access, &dataset->shards[i], err);
    h5_lock();
    H5Pclose(access);
    dataset->transfer = h5mpi_transfer_list(mpi);
    h5_unlock();
    return rc;
}
