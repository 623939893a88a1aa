/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * h5mpi: MPI for parallel HDF5 (`io: mpi`). No other file uses MPI. Order in a
 * process: boot is opened (and kept open, or closed, as h5mpi_wants_boot says),
 * h5mpi_open, ..., h5mpi_close, boot_close. All calls are made by the training
 * thread, in the same order on all ranks. Without parallel HDF5, h5mpi_open
 * returns ERR_UNAVAILABLE and names the package to install.
 */
#ifndef CDDP_HDF5IO_H5MPI_H
#define CDDP_HDF5IO_H5MPI_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct h5mpi h5mpi_t;

/* Is parallel HDF5 built in? */
bool h5mpi_built(void);

/* Must boot be open when h5mpi_open starts MPI? If not, it must be closed. Open
 * MPI 5 fails if PMIx is open: it then does not learn its own rank. Open MPI 4
 * fails if PMIx was closed. */
bool h5mpi_wants_boot(void);

/* Call MPI_Init_thread unless MPI is already initialized, and check that MPI's
 * rank and size equal the given ones. ERR_CONFIG: they differ, or no launcher
 * started this process. ERR_UNAVAILABLE: MPI fails. Collective over the job. */
err_code_t h5mpi_open(int rank, int size, h5mpi_t **out, err_t *err);
/* Call MPI_Finalize. Collective; NULL allowed. A rank that fails alone must not
 * call it, since it would wait for the others: it exits instead, and as MPI has
 * PMIx open, Slurm then ends the step. */
void h5mpi_close(h5mpi_t *mpi);

/* Do all ranks pass the same [value]? Collective; all get the same result. */
bool h5mpi_same(h5mpi_t *mpi, uint64_t value);

/* Set each of [count] flags that is set on any rank (logical or). ERR_IO when
 * MPI fails. Collective. */
err_code_t h5mpi_any(h5mpi_t *mpi, unsigned char *flags, int count, err_t *err);

/* File-access list for collective MPI-IO with collective metadata, for files of
 * contiguous datasets. H5Pclose frees it. Lock held. */
hid_t h5mpi_access_list(h5mpi_t *mpi);

/* The same without collective metadata, for reading any file: collective
 * metadata reads hang if ranks want different chunks (HDF5 before 1.10.9). Lock
 * held. */
hid_t h5mpi_access_list_read(h5mpi_t *mpi);

/* A collective transfer list. H5Pclose frees it. Lock held. */
hid_t h5mpi_transfer_list(h5mpi_t *mpi);

#endif
