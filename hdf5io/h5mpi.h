/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * h5mpi: MPI around parallel HDF5 (`io: mpi`). The only file that knows MPI.
 * Order in a process: boot opened (and kept open), h5mpi_open, ...,
 * h5mpi_close, boot_close. All calls stay in the training thread, in the same
 * order on all ranks. Built without parallel HDF5, h5mpi_open answers
 * ERR_UNAVAILABLE with the package that mends it.
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

/* MPI_Init_thread (if nobody did), check that MPI's rank and size are the given
 * ones. Collective over the job. */
err_code_t h5mpi_open(int rank, int size, h5mpi_t **out, err_t *err);
/* MPI_Finalize; collective; NULL allowed. A rank that fails alone must not come
 * here, where it would wait for the others: it exits, and as PMIx is still open
 * Slurm then ends the step. */
void h5mpi_close(h5mpi_t *mpi);

/* Do all ranks give the same [value]? Collective; all get the same answer. */
bool h5mpi_same(h5mpi_t *mpi, uint64_t value);

/* Of each of [count] flags, set on any rank? Then set on all. ERR_IO when MPI
 * fails. Collective. */
err_code_t h5mpi_any(h5mpi_t *mpi, unsigned char *flags, int count, err_t *err);

/* File-access list for collective MPI-IO with collective metadata: for files of
 * contiguous datasets. Lock held; H5Pclose frees. */
hid_t h5mpi_access_list(h5mpi_t *mpi);

/* The same for reading any file: each rank reads metadata by itself, as
 * collective reads of chunks hang otherwise when ranks want different chunks
 * (HDF5 before 1.10.9). */
hid_t h5mpi_access_list_read(h5mpi_t *mpi);

/* A collective transfer list. Lock held; H5Pclose frees. */
hid_t h5mpi_transfer_list(h5mpi_t *mpi);

#endif
