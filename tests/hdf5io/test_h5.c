/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/h5.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5io/h5mpi.h"
#include "lib/facts.h"

Test(h5, a_sentence_carries_the_cause)
{
    err_t err = ERR_INIT;

    h5_lock();
    cr_assert_lt(H5Fopen("/nowhere/at/all.h5", H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    cr_assert_eq(h5_err_set(&err, ERR_IO, "cannot open %s", "it"), ERR_IO);
    FACTS(err.text, "cannot open it", "No such file or directory");
    h5_err_set(&err, ERR_IO, "again");
    cr_assert_str_eq(err.text, "again", "the stack is cleared");
    h5_unlock();
}

Test(h5, the_access_list_asks_for_no_file_locks)
{
    hsize_t threshold, alignment;
    hid_t list;

    h5_lock();
    list = h5_access_list();
    cr_assert_geq(list, 0);
    H5Pget_alignment(list, &threshold, &alignment);
    cr_assert_eq(threshold, 65536);
    cr_assert_eq(alignment, 4096);
#if H5_VERSION_GE(1, 10, 7)
    hbool_t locks = true, ignore = false;

    H5Pget_file_locking(list, &locks, &ignore);
    cr_assert_not(locks);
    cr_assert(ignore);
#endif
    H5Pclose(list);
    h5_unlock();
}

/* tests/slurm/mpiio.t tests MPI itself on the cluster. */
Test(h5mpi, a_process_of_no_job_is_refused_with_the_way_out)
{
    h5mpi_t *mpi = NULL;
    err_t err = ERR_INIT;

    unsetenv("PMIX_RANK");
    cr_assert_eq(h5mpi_open(0, 1, &mpi, &err),
                 h5mpi_built() ? ERR_CONFIG : ERR_UNAVAILABLE);
    cr_assert_null(mpi);
    cr_assert_not_null(strstr(err.text, "use io: independent"), "%s", err.text);
    if (!h5mpi_built())
        cr_assert_not_null(strstr(err.text, "libhdf5-openmpi-dev"), "%s",
                           err.text);
    h5mpi_close(mpi);
}
