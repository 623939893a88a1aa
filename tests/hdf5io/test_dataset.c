/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/dataset.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5io/dataset_tell.h"
#include "hdf5io/h5.h"
#include "open.h"

Test(dataset, uneven_shards_of_any_layout_give_every_sample)
{
    const int64_t rows[] = {5, 1, 0, 37, 2};
    int64_t first = 0;
    char *directory = files_make();
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    char name[32];

    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i + 8);
        open_write(directory, name, (files_layout_t)i, first, rows[i]);
        first += rows[i];
    }
    open_setup(&setup, directory, "part-*.h5");
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_samples(dataset), 45);
    cr_assert_eq(hdf5io_dataset_shards(dataset), 5);
    cr_assert_eq(hdf5io_dataset_sample_bytes(dataset), 12 + 8);
    cr_assert_not(hdf5io_dataset_collective(dataset));
    cr_assert_not_null(strstr(hdf5io_dataset_shard(dataset, 2), "part-10.h5"),
                       "numbers in names count as numbers");
    cr_assert_eq(open_wrong_orders(dataset, 45), 0);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}

Test(dataset, a_file_found_twice_counts_once)
{
    char *directory = files_make();
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    open_write(directory, "b[1].h5", FILES_CONTIGUOUS, 4, 3);
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    open_setup(&setup, directory, "b[1].h5");
    setup.patterns[1] = files_path(directory, "*.h5");
    setup.patterns[2] = files_path(directory, "a.h5");
    setup.shards.count = 3;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_shards(dataset), 2);
    cr_assert_eq(open_wrong_orders(dataset, 7), 0);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}

Test(dataset, bytes_read_are_those_of_the_samples)
{
    const int64_t index[] = {3, 4, 9, 9};
    char *directory = files_make();
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 10);
    open_setup(&setup, directory, "a.h5");
    dataset = open_dataset(&setup);
    cr_assert_eq(open_wrong_samples(dataset, index, 4), 0);
    cr_assert_eq(hdf5io_dataset_bytes_read(dataset), 3 * 20,
                 "a sample wanted twice is read once");
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}

/* Values that every type can represent exactly. */
static double small_value(int64_t row, int64_t element)
{
    return (double)((row * 5 + element) % 100);
}

/* Test one file of one layout with inputs and targets of [type]. */
static void check_type(const char *directory, files_layout_t layout, hid_t type,
                       int number)
{
    const files_column_t columns[] = {{"/spins", 1, {12}, type, small_value},
                                      {"/phase", 1, {2}, type, small_value}};
    const int64_t index[] = {8, 0, 3, 4, 5, 3};
    float input[6][12], target[6][2];
    char *path = files_path(directory, "typed.h5");
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    err_t err = ERR_INIT;

    files_write(path, layout, 0, 9, columns, 2);
    open_setup(&setup, directory, "typed.h5");
    setup.input.scale = 0.5;
    setup.input.shift = -1;
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.config.targets[0].elems = 2;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 6, input[0], target, &err),
                 ERR_OK, "type %d, layout %d: %s", number, (int)layout,
                 err.text);
    for (int i = 0; i < 6; i++)
        for (int e = 0; e < 12; e++) {
            cr_assert_eq((double)input[i][e],
                         small_value(index[i], e) * 0.5 - 1,
                         "type %d, layout %d", number, (int)layout);
            if (e < 2)
                cr_assert_eq((double)target[i][e], small_value(index[i], e));
        }
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
}

/* binary16 of IEEE 754, as h5py describes it. */
static hid_t half_precision(H5T_order_t order)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    H5Tset_order(type, order);
    return type;
}

static hid_t brain_float(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    H5Tset_fields(type, 15, 7, 8, 0, 7);
    H5Tset_size(type, 2);
    return type;
}

/* Half precision with another bias is HDF5's to convert. */
static hid_t odd_half(void)
{
    hid_t type = half_precision(H5T_ORDER_LE);

    H5Tset_ebias(type, 14);
    return type;
}

static hid_t camera_bits(void)
{
    hid_t type = H5Tcopy(H5T_STD_U16LE);

    H5Tset_precision(type, 12);
    return type;
}

Test(dataset, every_type_order_and_layout_gives_the_same_floats)
{
    const hid_t types[] = {H5T_STD_I8LE,
                           H5T_STD_U8LE,
                           H5T_STD_I16LE,
                           H5T_STD_I16BE,
                           H5T_STD_U16LE,
                           H5T_STD_U16BE,
                           H5T_STD_I32LE,
                           H5T_STD_I32BE,
                           H5T_STD_U32LE,
                           H5T_STD_U32BE,
                           H5T_STD_I64LE,
                           H5T_STD_I64BE,
                           H5T_STD_U64LE,
                           H5T_STD_U64BE,
                           H5T_IEEE_F32LE,
                           H5T_IEEE_F32BE,
                           H5T_IEEE_F64LE,
                           H5T_IEEE_F64BE,
                           camera_bits(),
                           brain_float(),
                           odd_half(),
                           half_precision(H5T_ORDER_LE),
                           half_precision(H5T_ORDER_BE)};
    char *directory = files_make();

    for (int i = 0; i < (int)(sizeof types / sizeof types[0]); i++)
        for (int layout = 0; layout < FILES_LAYOUTS; layout++)
            check_type(directory, (files_layout_t)layout, types[i], i);
    files_remove(directory);
}

/* HDF5 would convert them to float32 first: 4 bytes a number. */
Test(dataset, half_precision_is_read_as_stored)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, half_precision(H5T_ORDER_BE), small_value},
        {"/phase", 0, {0}, H5T_STD_U8LE, open_phase}};
    const int64_t index[] = {3, 4, 9};
    char *directory = files_make();
    char *path = files_path(directory, "half.h5");
    float input[3][12];
    int64_t target[3];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    files_write(path, FILES_CONTIGUOUS, 0, 10, columns, 2);
    open_setup(&setup, directory, "half.h5");
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 3, input[0], target, NULL),
                 ERR_OK);
    cr_assert_eq((double)input[2][11], small_value(9, 11));
    cr_assert_eq(hdf5io_dataset_bytes_read(dataset), 3 * (12 * 2 + 1));
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
    files_remove(directory);
}

static double hard_value(int64_t row, int64_t element)
{
    if (row == 3 && element == 1)
        return -0.0;
    return sin((double)(row * 31 + element)) * pow(10.0, (double)(row % 80));
}

/* Numbers that must be rounded: the layout must not change the rounding. */
Test(dataset, contiguous_and_gzip_give_the_same_bits)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, H5T_IEEE_F64BE, hard_value},
        {"/phase", 0, {0}, H5T_STD_U8LE, open_phase}};
    const hdf5io_way_t ways[FILES_LAYOUTS] = {
        HDF5IO_WAY_PREAD, HDF5IO_WAY_CHUNKS, HDF5IO_WAY_CHUNKS,
        HDF5IO_WAY_COMPACT, HDF5IO_WAY_PREAD};
    float input[FILES_LAYOUTS][60 * 12];
    char *directory = files_make();
    int64_t index[60], target[60];
    int counts[HDF5IO_WAYS];

    for (int64_t i = 0; i < 60; i++)
        index[i] = i * 7 % 60;
    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        char *path = files_path(directory, "hard.h5");
        hdf5io_dataset_t *dataset;
        open_setup_t setup;

        files_write(path, (files_layout_t)layout, 0, 60, columns, 2);
        open_setup(&setup, directory, "hard.h5");
        setup.input.scale = 0.1;
        setup.input.shift = 0.3;
        dataset = open_dataset(&setup);
        cr_assert_eq(hdf5io_dataset_read(dataset, index, 60, input[layout],
                                         target, NULL),
                     ERR_OK);
        cr_assert_arr_eq(input[layout], input[0], sizeof input[0]);
        hdf5io_dataset_ways(dataset, 0, counts);
        cr_assert_eq(counts[ways[layout]], 1, "layout %d", layout);
        hdf5io_dataset_close(dataset);
        open_setup_free(&setup);
        free(path);
    }
    files_remove(directory);
}

static double one_based(int64_t row, int64_t element)
{
    return open_phase(row, element) + 1;
}

Test(dataset, labels_may_be_floats_and_count_from_one)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, H5T_STD_I8LE, open_spin},
        {"/phase", 1, {1}, H5T_IEEE_F32LE, one_based}};
    char *directory = files_make();
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    files_write(path, FILES_CONTIGUOUS, 0, 9, columns, 2);
    open_setup(&setup, directory, "a.h5");
    setup.target.shift = -1;
    dataset = open_dataset(&setup);
    cr_assert_eq(open_wrong_orders(dataset, 9), 0);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
    files_remove(directory);
}

/* h5py stores bool as an enumeration of int8. */
Test(dataset, an_enumeration_counts_as_its_integers)
{
    const signed char no = 0, yes = 1;
    const signed char values[4] = {1, 0, 0, 1};
    const hsize_t rows = 4;
    const int64_t index[] = {0, 1, 2, 3};
    char *directory = files_make();
    char *path = files_path(directory, "bool.h5");
    hid_t type = H5Tenum_create(H5T_STD_I8LE), file, space, data;
    float input[4 * 12], target[4];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    open_write(directory, "bool.h5", FILES_CONTIGUOUS, 0, 4);
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    space = H5Screate_simple(1, &rows, NULL);
    data = H5Dcreate2(file, "/flag", type, space, H5P_DEFAULT, H5P_DEFAULT,
                      H5P_DEFAULT);
    cr_assert_geq(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
                  0);
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
    H5Tclose(type);
    open_setup(&setup, directory, "bool.h5");
    setup.target.path = (char *)"flag";
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 4, input, target, NULL),
                 ERR_OK);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(target[i], (float)values[i]);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
    files_remove(directory);
}

/* Data that was never written reads as HDF5's fill value; it has no file
 * offset. */
Test(dataset, a_dataset_never_written_reads_as_its_fill_value)
{
    const hsize_t dims[2] = {5, 12};
    const int64_t index[] = {4, 0};
    const double fill = 2.5;
    char *directory = files_make();
    char *path = files_path(directory, "late.h5");
    hid_t file, space, list, data;
    float input[2 * 12];
    int64_t target[2];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    open_write(directory, "late.h5", FILES_USERBLOCK, 0, 5);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    space = H5Screate_simple(2, dims, NULL);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
    data = H5Dcreate2(file, "/late", H5T_IEEE_F32LE, space, H5P_DEFAULT, list,
                      H5P_DEFAULT);
    H5Dclose(data);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    open_setup(&setup, directory, "late.h5");
    setup.input.path = (char *)"/late";
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 2, input, target, NULL),
                 ERR_OK);
    for (int i = 0; i < 2 * 12; i++)
        cr_assert_eq(input[i], 2.5F);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    free(path);
    files_remove(directory);
}

static double wide_value(int64_t row, int64_t element)
{
    return (double)((row * 65537 + element) % 9973);
}

/* Rows of 1.6 MB are larger than the read buffer and than HDF5's default chunk
 * cache. */
Test(dataset, rows_larger_than_the_stage)
{
    const files_column_t columns[] = {
        {"/spins", 1, {400001}, H5T_STD_I32LE, wide_value},
        {"/phase", 0, {0}, H5T_STD_I32LE, open_phase}};
    const int64_t index[] = {5, 4, 1, 2, 3};
    char *directory = files_make();
    char *path = files_path(directory, "wide.h5");
    float *input = calloc(5 * 400001, sizeof *input);
    int64_t target[5];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    for (int layout = 0; layout < 3; layout++) {
        files_write(path, (files_layout_t)layout, 0, 6, columns, 2);
        open_setup(&setup, directory, "wide.h5");
        setup.config.inputs[0].elems = 400001;
        dataset = open_dataset(&setup);
        cr_assert_eq(
            hdf5io_dataset_read(dataset, index, 5, input, target, NULL),
            ERR_OK);
        for (int i = 0; i < 5; i++)
            for (int64_t e = 0; e < 400001; e += 1000)
                cr_assert_eq((double)input[i * 400001 + e],
                             wide_value(index[i], e));
        hdf5io_dataset_close(dataset);
        open_setup_free(&setup);
    }
    free(input);
    free(path);
    files_remove(directory);
}

static void *read_often(void *argument)
{
    intptr_t wrong = 0;

    for (int i = 0; i < 5; i++)
        wrong += open_wrong_orders(argument, 60);
    return (void *)wrong;
}

Test(dataset, threads_read_side_by_side)
{
    char *directory = files_make();
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    pthread_t threads[4];

    open_write(directory, "0.h5", FILES_CONTIGUOUS, 0, 30);
    open_write(directory, "1.h5", FILES_GZIP, 30, 30);
    open_setup(&setup, directory, "*.h5");
    dataset = open_dataset(&setup);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_often, dataset), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}

Test(dataset, tells_from_how_many_shards_it_reads_in_which_way)
{
    const int layouts[] = {FILES_GZIP, FILES_CONTIGUOUS, FILES_COMPACT,
                           FILES_CONTIGUOUS};
    const int64_t rows[] = {30, 30, 30, 0};
    char *directory = files_make();
    int counts[HDF5IO_WAYS], sum = 0;
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    char name[32];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%d.h5", i);
        open_write(directory, name, (files_layout_t)layouts[i], 30 * i,
                   rows[i]);
    }
    open_setup(&setup, directory, "*.h5");
    dataset = open_dataset(&setup);
    cr_expect_str_eq(hdf5io_dataset_path(dataset, 0), setup.input.path);
    hdf5io_dataset_ways(dataset, 0, counts);
    for (int w = 0; w < HDF5IO_WAYS; w++)
        sum += counts[w];
    cr_expect_eq(counts[HDF5IO_WAY_CHUNKS], 1);
    cr_expect_eq(counts[HDF5IO_WAY_PREAD], 1);
    cr_expect_eq(counts[HDF5IO_WAY_COMPACT], 1);
    cr_expect_eq(sum, 3, "a shard without samples counts");
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    files_remove(directory);
}
