/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * MPI is started as late, and used as little, as possible: it only gets a
 * duplicate of the world communicator for HDF5's files. HDF5 is initialized
 * before MPI on purpose: otherwise HDF5 registers with MPI_Finalize and shuts
 * itself down there, while files opened without MPI are still in use.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "hdf5io/h5mpi.h"

#include "hdf5io/h5.h"

#ifdef HAVE_PARALLEL_HDF5

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct h5mpi {
    MPI_Comm comm;
    bool owner; /* we initialized MPI, so we finalize it */
};

bool h5mpi_built(void)
{
    return true;
}

bool h5mpi_wants_boot(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, major;

    return MPI_Get_library_version(text, &length) != MPI_SUCCESS ||
           sscanf(text, "Open MPI v%d", &major) != 1 || major < 5;
}

/* Initialize MPI unless that is done. A process outside any launcher is
 * refused, since MPI_Init as a singleton crashes after PMIx was used as a
 * singleton. */
static err_code_t h5mpi_start(bool *owner, err_t *err)
{
    int started, ended, provided;

    if (MPI_Initialized(&started) != MPI_SUCCESS ||
        MPI_Finalized(&ended) != MPI_SUCCESS)
        return err_set(err, ERR_UNAVAILABLE, "MPI does not answer");
    if (ended)
        return err_set(err, ERR_UNAVAILABLE,
                       "io: mpi: MPI was already finalized in this process");
    *owner = !started;
    if (started)
        return ERR_OK;
    if (getenv("PMIX_RANK") == NULL)
        return err_set(err, ERR_CONFIG,
                       "io: mpi needs ranks started by srun --mpi=pmix; this "
                       "process was started without: use io: independent");
    h5_lock();
    H5open();
    h5_unlock();
    /* Open MPI polls without yielding by default. If ranks outnumber cores,
     * that makes collective reads ten times slower, and it takes the core from
     * our other threads. A user's own setting is kept. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) !=
        MPI_SUCCESS)
        return err_set(err, ERR_UNAVAILABLE, "io: mpi: MPI_Init failed");
    return ERR_OK;
}

/* Do MPI's rank and size equal ours? With a library without PMIx support every
 * rank is a world of its own. */
static err_code_t h5mpi_check(int rank, int size, err_t *err)
{
    int mpi_rank, mpi_size;

    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    if (mpi_rank == rank && mpi_size == size)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "io: mpi: MPI says rank %d of %d, PMIx says rank %d of %d: "
                   "use an MPI library with PMIx support (ompi_info | grep "
                   "pmix), or io: independent",
                   mpi_rank, mpi_size, rank, size);
}

err_code_t h5mpi_open(int rank, int size, h5mpi_t **out, err_t *err)
{
    h5mpi_t *mpi = NULL;
    err_code_t rc = mem_new(h5mpi_t, 1, "the MPI handle", &mpi, err);

    if (rc != ERR_OK)
        return rc;
    rc = h5mpi_start(&mpi->owner, err);
    if (rc != ERR_OK)
        goto fail;
    rc = h5mpi_check(rank, size, err);
    if (rc != ERR_OK)
        goto fail_started;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm) != MPI_SUCCESS) {
        rc = err_set(err, ERR_UNAVAILABLE, "io: mpi: MPI_Comm_dup failed");
        goto fail_started;
    }
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    *out = mpi;
    return ERR_OK;

fail_started:
    if (mpi->owner)
        MPI_Finalize();
fail:
    mem_free(mpi);
    return rc;
}

void h5mpi_close(h5mpi_t *mpi)
{
    if (mpi == NULL)
        return;
    MPI_Comm_free(&mpi->comm);
    if (mpi->owner)
        MPI_Finalize();
    mem_free(mpi);
}

bool h5mpi_same(h5mpi_t *mpi, uint64_t value)
{
    uint64_t mine[2] = {value, ~value}, largest[2];

    /* All values are equal if their maximum equals their minimum; the minimum
     * is the complement of the maximum of all complements. */
    if (MPI_Allreduce(mine, largest, 2, MPI_UINT64_T, MPI_MAX, mpi->comm) !=
        MPI_SUCCESS)
        return false;
    return largest[0] == ~largest[1];
}

err_code_t h5mpi_any(h5mpi_t *mpi, unsigned char *flags, int count, err_t *err)
{
    if (MPI_Allreduce(MPI_IN_PLACE, flags, count, MPI_UNSIGNED_CHAR, MPI_BOR,
                      mpi->comm) != MPI_SUCCESS)
        return err_set(err, ERR_IO, "io: mpi: MPI_Allreduce failed");
    return ERR_OK;
}

static hid_t h5mpi_list(h5mpi_t *mpi, bool collective_metadata)
{
    hid_t list = h5_access_list();
    herr_t status = 0;

    if (list < 0)
        return list;
    status |= H5Pset_fapl_mpio(list, mpi->comm, MPI_INFO_NULL);
    status |= H5Pset_all_coll_metadata_ops(list, collective_metadata);
    status |= H5Pset_coll_metadata_write(list, collective_metadata);
    if (status < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

hid_t h5mpi_access_list(h5mpi_t *mpi)
{
    return h5mpi_list(mpi, true);
}

hid_t h5mpi_access_list_read(h5mpi_t *mpi)
{
    return h5mpi_list(mpi, false);
}

hid_t h5mpi_transfer_list(h5mpi_t *mpi)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);

    (void)mpi;
    if (list < 0)
        return list;
    if (H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE) < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

#else

bool h5mpi_built(void)
{
    return false;
}

bool h5mpi_wants_boot(void)
{
    return true;
}

err_code_t h5mpi_open(int rank, int size, h5mpi_t **out, err_t *err)
{
    (void)rank;
    (void)size;
    (void)out;
    return err_set(
        err, ERR_UNAVAILABLE,
        "io: mpi needs parallel HDF5, which is not built in: install "
        "libhdf5-openmpi-dev (Debian) or spack package hdf5+mpi and "
        "configure again, or use io: independent");
}

void h5mpi_close(h5mpi_t *mpi)
{
    (void)mpi;
}

bool h5mpi_same(h5mpi_t *mpi, uint64_t value)
{
    (void)mpi;
    (void)value;
    return false;
}

err_code_t h5mpi_any(h5mpi_t *mpi, unsigned char *flags, int count, err_t *err)
{
    (void)mpi;
    (void)flags;
    (void)count;
    (void)err;
    return ERR_OK;
}

hid_t h5mpi_access_list(h5mpi_t *mpi)
{
    (void)mpi;
    return H5I_INVALID_HID;
}

hid_t h5mpi_access_list_read(h5mpi_t *mpi)
{
    (void)mpi;
    return H5I_INVALID_HID;
}

hid_t h5mpi_transfer_list(h5mpi_t *mpi)
{
    (void)mpi;
    return H5I_INVALID_HID;
}

#endif
