/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Headers that describe more data than is stored: HDF5 creates such files, and
 * does not check them before it reads. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "hdf5io/digest.h"
#include "hdf5io/storage.h"
#include "open.h"

TestSuite(storage, .init = open_start, .fini = open_stop, .timeout = 60);

/* Shape and storage of a dataset; zeros: contiguous, int8. */
typedef struct shape {
    int ndim;
    hsize_t dims[3], most[3], chunk[3];
    hid_t type;
    H5D_layout_t layout;
    bool never, undefined, first_row, early;
} shape_t;

static void make(const char *name, const char *path, const shape_t *shape)
{
    char *there = files_path(open_directory, name);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space, set, file;
    const hid_t type = shape->type > 0 ? shape->type : H5T_STD_I8LE;
    hsize_t zero[3] = {0}, row[3];

    memcpy(row, shape->dims, sizeof row);
    row[0] = 1;
    file = H5Fopen(there, H5F_ACC_RDWR, H5P_DEFAULT);
    if (shape->layout == H5D_CHUNKED)
        H5Pset_chunk(list, shape->ndim, shape->chunk);
    else
        H5Pset_layout(list, shape->layout);
    if (shape->never)
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    if (shape->early)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    if (shape->undefined)
        H5Pset_fill_value(list, type, NULL);
    space = H5Screate_simple(shape->ndim, shape->dims,
                             shape->most[0] > 0 ? shape->most : NULL);
    set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert_geq(set, 0, "%s", path);
    if (shape->first_row) {
        hid_t memory = H5Screate_simple(shape->ndim, row, NULL);
        char numbers[64] = {0};

        H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, row, NULL);
        cr_assert_geq(
            H5Dwrite(set, H5T_NATIVE_INT8, memory, space, H5P_DEFAULT, numbers),
            0);
        H5Sclose(memory);
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
    H5Fclose(file);
    free(there);
}

/* Make a file with /spins and /phase of these shapes. */
static void make_both(const char *name, const shape_t *spins,
                      const shape_t *phase)
{
    char *there = files_path(open_directory, name);

    H5Fclose(H5Fcreate(there, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    free(there);
    make(name, "/spins", spins);
    make(name, "/phase", phase);
}

Test(storage, more_bytes_than_any_file_can_hold)
{
    const hsize_t many = (hsize_t)1 << 62;
    const shape_t phase = {
        .ndim = 1, .dims = {many}, .chunk = {1}, .layout = H5D_CHUNKED};

    make_both("a.h5",
              &(shape_t){.ndim = 2,
                         .dims = {many, 12},
                         .chunk = {1, 12},
                         .layout = H5D_CHUNKED},
              &phase);
    OPEN_REFUSED(&open_all, ERR_DATA,
                 "/spins has a shape of more bytes than any file can hold");
    /* HDF5 computes 2^64 bytes as 0 and creates the dataset; reading it ended
     * the process. */
    make_both("a.h5",
              &(shape_t){.ndim = 3,
                         .dims = {many, 3, 4},
                         .type = H5T_STD_I32LE,
                         .layout = H5D_COMPACT},
              &phase);
    OPEN_REFUSED(&open_all, ERR_DATA,
                 "/spins has a shape of more bytes than any file can hold");
}

Test(storage, more_samples_than_can_be_counted)
{
    const shape_t many = {.ndim = 1,
                          .dims = {(hsize_t)1 << 62},
                          .chunk = {1 << 20},
                          .layout = H5D_CHUNKED};

    open_all.config.inputs[0].elems = 1;
    make_both("a.h5", &many, &many);
    make_both("b.h5", &many, &many);
    OPEN_REFUSED(&open_all, ERR_DATA,
                 "b.h5 hold more samples than can be counted");
}

Test(storage, what_was_never_written_and_has_no_fill_value)
{
    static const H5D_layout_t layouts[] = {H5D_CONTIGUOUS, H5D_CHUNKED};
    const shape_t phase = {.ndim = 1, .dims = {5}};

    for (int i = 0; i < 2; i++)
        for (int undefined = 0; undefined < 2; undefined++) {
            make_both("a.h5",
                      &(shape_t){.ndim = 2,
                                 .dims = {5, 12},
                                 .chunk = {2, 12},
                                 .layout = layouts[i],
                                 .never = undefined == 0,
                                 .undefined = undefined == 1,
                                 .first_row = i == 1},
                      &phase);
            OPEN_REFUSED(&open_all, ERR_DATA,
                         "not all of /spins was ever written");
        }
}

/* A file of a few bytes with a sparse chunk of a gigabyte. */
Test(storage, a_chunk_of_a_gigabyte_takes_no_memory)
{
    const int64_t index[] = {0, 4};
    const shape_t spins = {.ndim = 2,
                           .dims = {5, 12},
                           .most = {H5S_UNLIMITED, H5S_UNLIMITED},
                           .chunk = {((hsize_t)1 << 30) / 12, 12},
                           .layout = H5D_CHUNKED,
                           .never = true,
                           .early = true};
    const shape_t phase = {.ndim = 1, .dims = {5}};
    struct rusage usage;
    hdf5io_dataset_t *dataset;
    int64_t target[2];
    float input[24];

    make_both("a.h5", &spins, &phase);
    dataset = open_dataset(&open_all);
    cr_assert_lt(hdf5io_dataset_cached(dataset), (size_t)1 << 30);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 2, input, target, NULL),
                 ERR_OK);
    for (int i = 0; i < 24; i++)
        cr_assert_eq(input[i], 0);
    hdf5io_dataset_close(dataset);
    getrusage(RUSAGE_SELF, &usage);
    cr_assert_lt(usage.ru_maxrss, 1 << 19, "%ld KB", usage.ru_maxrss);
}

Test(storage, chunks_are_counted_without_overflow)
{
    const hsize_t none[] = {0, UINT64_MAX}, one[] = {1, 1};
    const hsize_t many[] = {(hsize_t)1 << 62, 4, 1}, ones[] = {1, 1, 1};
    const hsize_t odd[] = {7, 5, 12}, chunk[] = {3, 5, 8};

    cr_assert_eq(hdf5io_storage_chunks(none, one, 2), 0);
    cr_assert_eq(hdf5io_storage_chunks(many, ones, 3), UINT64_MAX);
    cr_assert_eq(hdf5io_storage_chunks(odd, chunk, 3), 3 * 1 * 2);
    cr_assert_eq(hdf5io_storage_chunks(odd, chunk, 0), 1);
}
