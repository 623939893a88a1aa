/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For the programs that the .t files run: MPI in a rank that also uses boot. */
#ifndef CDDP_TESTS_SLURM_PROBE_MPI_H
#define CDDP_TESTS_SLURM_PROBE_MPI_H

#include "boot/boot.h"
#include "hdf5io/h5mpi.h"

/* Start MPI as h5mpi_open does, with [*boot] open before and after. If MPI
 * wants boot to be closed meanwhile, boot is opened again. A boot that is
 * opened again uses the same keys, so there must be no exchange before this
 * call. After a failure [*boot] may be NULL. Collective. */
static inline err_code_t probe_mpi_open(boot_t **boot, h5mpi_t **mpi,
                                        err_t *err)
{
    const boot_config_t config = {.timeout = 30};
    const int rank = boot_rank(*boot), size = boot_size(*boot);
    const bool closes = !h5mpi_wants_boot();
    err_code_t code;

    if (closes) {
        boot_close(*boot);
        *boot = NULL;
    }
    code = h5mpi_open(rank, size, mpi, err);
    return code == ERR_OK && closes ? boot_open(&config, boot, err) : code;
}

#endif
