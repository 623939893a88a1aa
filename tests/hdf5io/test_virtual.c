/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Virtual datasets, and external raw files. If complete, they give the numbers
 * of one plain file; if anything is missing they are refused, where HDF5 would
 * return fill values. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5io/h5.h"
#include "open.h"

static char *directory;
static open_setup_t setup;

static void start(void)
{
    char *parts;

    h5_lock(); /* initializes HDF5 as a program does before its first file */
    h5_unlock();
    open_begin(&directory, &setup, "master.h5");
    parts = files_path(directory, "parts");
    cr_assert_eq(mkdir(parts, 0777), 0);
    free(parts);
}

static void stop(void)
{
    unsetenv("HDF5_VDS_PREFIX");
    unsetenv("HDF5_EXTFILE_PREFIX");
    open_end(directory, &setup);
}

TestSuite(virtual, .init = start, .fini = stop, .timeout = 120);

static hid_t create(const char *name)
{
    return files_create(directory, name);
}

/* The samples of master.h5 must be those that were written. */
static void check_samples(int64_t rows)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);

    cr_assert_eq(hdf5io_dataset_samples(dataset), rows);
    cr_assert_eq(open_wrong_orders(dataset, rows), 0);
    hdf5io_dataset_close(dataset);
}

static void check_refused(const char *const *texts)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_open(&setup.config, &dataset, &err), ERR_DATA,
                 "%s", err.text);
    for (; *texts != NULL; texts++)
        cr_assert_not_null(strstr(err.text, *texts), "\"%s\" lacks \"%s\"",
                           err.text, *texts);
}

#define CHECK_REFUSED(...) \
    check_refused((const char *const[]){__VA_ARGS__, NULL})

/* A piece of a virtual dataset: rows [to], [to] + [stride], ... ([rows] of
 * them) are rows [from], [from] + 1, ... of a source in [file], which has [of]
 * rows. */
typedef struct piece {
    hsize_t to, rows, stride, from, of;
    const char *file;
} piece_t;

/* Add the virtual dataset [name] with [total] rows, made of the pieces, to
 * [file]. */
static void add_virtual(hid_t file, const char *name, hid_t type, int ndim,
                        hsize_t total, const piece_t *pieces, int count)
{
    const hsize_t one[3] = {1, 1, 1};
    hsize_t dims[3] = {total, 3, 4};
    hid_t space = H5Screate_simple(ndim, dims, NULL), set;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    for (int i = 0; i < count; i++) {
        const piece_t *piece = &pieces[i];
        hsize_t begin[3] = {piece->to}, stride[3] = {1, 1, 1};
        hsize_t block[3] = {piece->rows, 3, 4};
        hid_t source;

        stride[0] = piece->stride == 0 ? 1 : piece->stride;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, begin, stride, block, NULL);
        dims[0] = piece->of;
        source = H5Screate_simple(ndim, dims, NULL);
        begin[0] = piece->from;
        if (piece->rows != piece->of)
            H5Sselect_hyperslab(source, H5S_SELECT_SET, begin, NULL, one,
                                block);
        cr_assert_geq(H5Pset_virtual(list, space, piece->file, name, source),
                      0);
        H5Sclose(source);
    }
    H5Sselect_all(space);
    set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    cr_assert_geq(set, 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
}

/* Make [name] with virtual /spins and /phase of the same pieces. */
static void write_virtual(const char *name, hsize_t total,
                          const piece_t *pieces, int count)
{
    hid_t file = create(name);

    add_virtual(file, "/spins", H5T_STD_I8LE, 3, total, pieces, count);
    add_virtual(file, "/phase", H5T_STD_I64LE, 1, total, pieces, count);
    H5Fclose(file);
}

static const piece_t four[] = {{0, 10, 0, 0, 10, "parts/0.h5"},
                               {10, 5, 0, 0, 5, "parts/1.h5"},
                               {15, 20, 0, 0, 20, "parts/2.h5"},
                               {35, 5, 0, 0, 5, "parts/3.h5"}};

static void write_four(void)
{
    for (int i = 0; i < 4; i++)
        open_write(directory, four[i].file, (files_layout_t)i,
                   (int64_t)four[i].to, (int64_t)four[i].rows);
}

static void remove_file(const char *name)
{
    char *path = files_path(directory, name);

    cr_assert_eq(unlink(path), 0);
    free(path);
}

Test(virtual, over_many_files)
{
    write_four();
    write_virtual("master.h5", 40, four, 4);
    check_samples(40);
}

/* A compressed source that is also a shard stays open in HDF5, which then must
 * open it a second time as a source. */
Test(virtual, whose_sources_are_shards_too)
{
    hdf5io_dataset_t *dataset;
    const piece_t pieces[] = {{0, 10, 0, 0, 10, "z-part.h5"}};
    int64_t index[20];
    float input[20 * OPEN_ELEMS];
    int64_t target[20];
    err_t err = ERR_INIT;

    open_write(directory, "z-part.h5", FILES_GZIP, 0, 10);
    write_virtual("master.h5", 10, pieces, 1);
    free(setup.patterns[0]);
    setup.patterns[0] = files_path(directory, "*.h5");
    dataset = open_dataset(&setup);
    for (int64_t i = 0; i < 20; i++)
        index[i] = i;
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 20, input, target, &err),
                 ERR_OK, "%s", err.text);
    for (int64_t i = 0; i < 20 * OPEN_ELEMS; i++)
        cr_assert_eq((double)input[i],
                     open_spin(i / OPEN_ELEMS % 10, i % OPEN_ELEMS));
    hdf5io_dataset_close(dataset);
}

/* A host program that used HDF5 before, with file locking: HDF5 would silently
 * fail to open a source that is already open here. */
Test(virtual_host, that_started_hdf5_with_locks, .fini = stop)
{
    const piece_t pieces[] = {{0, 10, 0, 0, 10, "part.h5"}};
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;

    unsetenv("HDF5_USE_FILE_LOCKING");
    H5open();
    directory = files_make();
    open_setup(&setup, directory, "master.h5");
    open_write(directory, "part.h5", FILES_GZIP, 0, 10);
    write_virtual("master.h5", 10, pieces, 1);
    if (hdf5io_dataset_open(&setup.config, &dataset, &err) == ERR_OK) {
        /* this version of HDF5 uses our access list for sources */
        cr_assert_eq(open_wrong_orders(dataset, 10), 0);
        hdf5io_dataset_close(dataset);
        return;
    }
    cr_assert_eq(err.code, ERR_UNAVAILABLE);
    cr_assert_not_null(strstr(err.text, "HDF5_USE_FILE_LOCKING"), "%s",
                       err.text);
}

Test(virtual, more_sources_than_files_may_be_open)
{
    struct rlimit limit = {300, 300};
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;
    piece_t pieces[100];
    char names[100][16];

    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "p%d.h5", i);
        pieces[i] = (piece_t){(hsize_t)i, 1, 0, 0, 1, names[i]};
        open_write(directory, names[i], FILES_CONTIGUOUS, i, 1);
    }
    write_virtual("master.h5", 100, pieces, 100);
    check_samples(100);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(hdf5io_dataset_open(&setup.config, &dataset, &err),
                 ERR_UNAVAILABLE, "%s", err.text);
    cr_assert_not_null(strstr(err.text, "need 458 files open"), "%s", err.text);
}

Test(virtual, rows_in_turns_and_parts_of_sources)
{
    const piece_t pieces[] = {{0, 10, 2, 0, 10, "a.h5"},
                              {1, 10, 2, 0, 10, "b.h5"},
                              {20, 4, 0, 20, 40, "c.h5"},
                              {24, 6, 0, 24, 40, "c.h5"}};
    const hid_t types[] = {H5T_STD_I8LE, H5T_STD_I64LE};
    hid_t file;

    open_write(directory, "c.h5", FILES_CONTIGUOUS, 0, 40);
    /* a.h5 has the even and b.h5 the odd rows of the first 20 */
    for (int k = 0; k < 2; k++) {
        int8_t spins[10][12];
        int64_t phase[10];
        const void *data[] = {spins, phase};
        hsize_t dims[3] = {10, 3, 4};

        for (int r = 0; r < 10; r++) {
            phase[r] = (int64_t)open_phase(2 * r + k, 0);
            for (int e = 0; e < 12; e++)
                spins[r][e] = (int8_t)open_spin(2 * r + k, e);
        }
        file = create(k == 0 ? "a.h5" : "b.h5");
        for (int f = 0; f < 2; f++) {
            hid_t space = H5Screate_simple(f == 0 ? 3 : 1, dims, NULL);
            hid_t set =
                H5Dcreate2(file, f == 0 ? "spins" : "phase", types[f], space,
                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

            H5Dwrite(set, types[f], H5S_ALL, H5S_ALL, H5P_DEFAULT, data[f]);
            H5Dclose(set);
            H5Sclose(space);
        }
        H5Fclose(file);
    }
    write_virtual("master.h5", 30, pieces, 4);
    check_samples(30);
}

Test(virtual, of_a_virtual_dataset_behind_an_external_link)
{
    const piece_t near[] = {{0, 10, 0, 0, 10, "0.h5"},
                            {10, 5, 0, 0, 5, "1.h5"}};
    const piece_t far[] = {{0, 15, 0, 0, 15, "parts/middle.h5"},
                           {15, 20, 0, 0, 20, "parts/2.h5"},
                           {35, 5, 0, 0, 5, "parts/3.h5"}};
    hid_t file;

    write_four();
    write_virtual("parts/middle.h5", 15, near, 2);
    write_virtual("middle.h5", 40, far, 3);
    file = create("master.h5");
    H5Lcreate_external("middle.h5", "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external("middle.h5", "/phase", file, "phase", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
    check_samples(40);
    remove_file("parts/1.h5");
    CHECK_REFUSED("parts/middle.h5: the virtual dataset /spins takes values "
                  "from 1.h5:/spins",
                  "there is no file of that name");
}

Test(virtual, a_source_that_is_missing_is_named)
{
    char *path = files_path(directory, "parts/2.h5"), *parts;
    hid_t file;

    write_four();
    write_virtual("master.h5", 40, four, 4);
    remove_file("parts/2.h5");
    CHECK_REFUSED("master.h5: the virtual dataset /spins takes values from "
                  "parts/2.h5:/spins, but there is no file of that name");
    /* the file exists, but not the dataset */
    H5Fclose(create("parts/2.h5"));
    CHECK_REFUSED("parts/2.h5:/spins, but", "parts/2.h5 has no such dataset");
    /* a group, not a dataset, has this name */
    file = create("parts/2.h5");
    H5Gclose(H5Gcreate2(file, "spins", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    CHECK_REFUSED("parts/2.h5:/spins, but", "has no such dataset");
    files_write_text(path, "no HDF5 at all", 14);
    CHECK_REFUSED("parts/2.h5:/spins, but this file does not open");
    /* in another directory, which the environment variable names */
    remove_file("parts/2.h5");
    parts = files_path(directory, "elsewhere/parts");
    *strrchr(parts, '/') = '\0';
    cr_assert_eq(mkdir(parts, 0777), 0);
    setenv("HDF5_VDS_PREFIX", parts, 1);
    parts[strlen(parts)] = '/';
    cr_assert_eq(mkdir(parts, 0777), 0);
    open_write(directory, "elsewhere/parts/2.h5", FILES_CONTIGUOUS, 15, 20);
    check_samples(40);
    free(parts);
    free(path);
}

Test(virtual, a_source_shorter_or_longer_than_its_mapping)
{
    write_four();
    write_virtual("master.h5", 40, four, 4);
    open_write(directory, "parts/2.h5", FILES_CONTIGUOUS, 15, 19);
    CHECK_REFUSED("parts/2.h5:/spins, which has shape [19, 3, 4]");
    open_write(directory, "parts/2.h5", FILES_CONTIGUOUS, 15, 21);
    CHECK_REFUSED("parts/2.h5:/spins, which has shape [21, 3, 4]");
}

Test(virtual, part_of_a_source_that_is_too_short)
{
    const piece_t pieces[] = {{0, 20, 0, 0, 40, "a.h5"},
                              {20, 10, 0, 30, 40, "a.h5"}};

    write_virtual("master.h5", 30, pieces, 2);
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 39);
    CHECK_REFUSED("a.h5:/spins, which has shape [39, 3, 4]");
}

Test(virtual, rows_that_are_not_mapped)
{
    write_four();
    write_virtual("master.h5", 50, four, 4);
    CHECK_REFUSED("master.h5: the virtual dataset /spins has holes", "rows 40 "
                                                                     "to 49");
    write_virtual("master.h5", 40, four + 1, 3);
    CHECK_REFUSED("has holes", "rows 0 to 9");
}

Test(virtual, a_circle_is_found)
{
    const piece_t self[] = {{0, 10, 0, 0, 10, "."}};
    const piece_t master[] = {{0, 10, 0, 0, 10, "master.h5"}};
    const piece_t there[] = {{0, 10, 0, 0, 10, "parts/b.h5"}};
    const piece_t back[] = {{0, 10, 0, 0, 10, "../master.h5"}};

    write_virtual("master.h5", 10, self, 1);
    CHECK_REFUSED(".:/spins, which leads back to itself");
    write_virtual("master.h5", 10, master, 1);
    CHECK_REFUSED("master.h5:/spins, which leads back to itself");
    write_virtual("master.h5", 10, there, 1);
    write_virtual("parts/b.h5", 10, back, 1);
    CHECK_REFUSED("which leads back to itself");
}

/* Write /spins and /phase as virtual datasets with an unlimited mapping in
 * blocks of [rows] rows. Each block has its own source, with a printf name; or,
 * if [source_max] is unlimited, there is one unlimited source. */
static void write_endless(hid_t file, hsize_t rows, bool printf_names,
                          const char *source, const char *const *names)
{
    const hid_t types[] = {H5T_STD_I8LE, H5T_STD_I64LE};

    for (int f = 0; f < 2; f++) {
        const int ndim = f == 0 ? 3 : 1;
        hsize_t dims[3] = {rows, 3, 4}, most[3] = {H5S_UNLIMITED, 3, 4};
        hsize_t zero[3] = {0}, one[3] = {1, 1, 1};
        hsize_t count[3] = {H5S_UNLIMITED, 1, 1};
        hid_t to = H5Screate_simple(ndim, dims, most);
        hid_t from = H5Screate_simple(ndim, dims, most);
        hid_t list = H5Pcreate(H5P_DATASET_CREATE), set;

        H5Sselect_hyperslab(to, H5S_SELECT_SET, zero, dims, count, dims);
        if (!printf_names) {
            dims[0] = 1;
            H5Sselect_hyperslab(to, H5S_SELECT_SET, zero, one, count, dims);
            H5Sselect_hyperslab(from, H5S_SELECT_SET, zero, one, count, dims);
        }
        cr_assert_geq(H5Pset_virtual(list, to, source, names[f], from), 0);
        set = H5Dcreate2(file, f == 0 ? "spins" : "phase", types[f], to,
                         H5P_DEFAULT, list, H5P_DEFAULT);
        cr_assert_geq(set, 0);
        H5Dclose(set);
        H5Pclose(list);
        H5Sclose(from);
        H5Sclose(to);
    }
}

static const char *const plain_names[] = {"/spins", "/phase"};

Test(virtual, numbered_sources)
{
    hid_t file = create("master.h5");

    write_endless(file, 10, true, "parts/part-%b.h5", plain_names);
    H5Fclose(file);
    CHECK_REFUSED("parts/part-0.h5:/spins, but there is no file of that name");
    for (int i = 0; i < 4; i++) {
        char name[32];

        snprintf(name, sizeof name, "parts/part-%d.h5", i);
        open_write(directory, name, (files_layout_t)(3 - i), 10 * i, 10);
    }
    check_samples(40);
    open_write(directory, "parts/part-2.h5", FILES_CONTIGUOUS, 20, 9);
    CHECK_REFUSED("parts/part-2.h5:/spins, which has shape [9, 3, 4]");
    remove_file("parts/part-2.h5");
    CHECK_REFUSED("parts/part-2.h5:/spins, but there is no file of that name");
    remove_file("parts/part-3.h5");
    check_samples(20);
}

Test(virtual, a_source_without_end)
{
    hid_t file = create("master.h5");

    write_endless(file, 10, false, "a.h5", plain_names);
    H5Fclose(file);
    open_write(directory, "a.h5", FILES_CHUNKED, 0, 17);
    check_samples(17);
}

Test(virtual, a_circle_of_numbered_sources_or_without_end)
{
    const char *const numbered[] = {"/spins", "/phase"};
    hid_t file = create("master.h5");

    write_endless(file, 10, false, ".", plain_names);
    H5Fclose(file);
    CHECK_REFUSED(".:/spins, which leads back to itself");
    file = create("m0.h5");
    write_endless(file, 10, true, "m%b.h5", numbered);
    H5Fclose(file);
    free(setup.patterns[0]);
    setup.patterns[0] = files_path(directory, "m0.h5");
    CHECK_REFUSED("m0.h5:/spins, which leads back to itself");
}

/* ---- raw storage --------------------------------------------------------- */

/* Write master.h5 with /spins and /phase whose bytes are in the files [raw], 8
 * bytes after the start, divided after [first] bytes (0: one file). */
static void write_raw(int64_t rows, size_t first)
{
    const size_t row_bytes[] = {12, 8};
    const hid_t types[] = {H5T_STD_I8LE, H5T_STD_I64LE};
    hid_t file = create("master.h5");

    for (int f = 0; f < 2; f++) {
        char name[2][32];
        hsize_t dims[3] = {(hsize_t)rows, 3, 4};
        hid_t space = H5Screate_simple(f == 0 ? 3 : 1, dims, NULL), set;
        hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        int64_t *phase = calloc((size_t)rows, sizeof *phase);
        int8_t *spins = calloc((size_t)rows, 12);
        const size_t bytes = (size_t)rows * row_bytes[f];

        for (int64_t r = 0; r < rows; r++) {
            phase[r] = (int64_t)open_phase(r, 0);
            for (int64_t e = 0; e < 12; e++)
                spins[r * 12 + e] = (int8_t)open_spin(r, e);
        }
        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof name[k], "%s-%d.raw",
                     f == 0 ? "spins" : "phase", k);
        H5Pset_external(list, name[0], 8, first > 0 ? first : bytes);
        if (first > 0)
            H5Pset_external(list, name[1], 8, H5F_UNLIMITED);
        set = H5Dcreate2(file, f == 0 ? "spins" : "phase", types[f], space,
                         H5P_DEFAULT, list, H5P_DEFAULT);
        cr_assert_geq(set, 0);
        cr_assert_geq(H5Dwrite(set, types[f], H5S_ALL, H5S_ALL, H5P_DEFAULT,
                               f == 0 ? (void *)spins : (void *)phase),
                      0);
        H5Dclose(set);
        H5Pclose(list);
        H5Sclose(space);
        free(spins);
        free(phase);
    }
    H5Fclose(file);
}

Test(virtual, raw_storage_in_files)
{
    char *path = files_path(directory, "spins-1.raw");

    cr_assert_eq(chdir(directory), 0);
    write_raw(40, 0);
    check_samples(40);
    write_raw(40, 100);
    check_samples(40);
    cr_assert_eq(chdir("/"), 0);
    CHECK_REFUSED("master.h5: the values of /spins are in the external file "
                  "spins-0.raw, which does not open");
    cr_assert_eq(chdir(directory), 0);
    files_truncate(path, files_bytes(path) - 1);
    CHECK_REFUSED("spins-1.raw", "copy it again");
    unlink(path);
    CHECK_REFUSED("spins-1.raw, which does not open");
    free(path);
}

/* Data in one external file is read without HDF5, which reads this variable
 * only once. */
Test(virtual, raw_storage_in_a_directory_of_its_own)
{
    cr_assert_eq(chdir(directory), 0);
    write_raw(40, 0);
    cr_assert_eq(chdir("/"), 0);
    setenv("HDF5_EXTFILE_PREFIX", "${ORIGIN}", 1);
    check_samples(40);
    setenv("HDF5_EXTFILE_PREFIX", directory, 1);
    check_samples(40);
    setenv("HDF5_EXTFILE_PREFIX", "/nowhere", 1);
    CHECK_REFUSED("/nowhere/spins-0.raw");
}

Test(virtual, raw_storage_behind_a_link_and_a_mapping)
{
    const piece_t pieces[] = {{0, 40, 0, 0, 40, "raw.h5"}};
    char *from, *to;

    cr_assert_eq(chdir(directory), 0);
    write_raw(40, 0);
    from = files_path(directory, "master.h5");
    to = files_path(directory, "raw.h5");
    cr_assert_eq(rename(from, to), 0);
    write_virtual("master.h5", 40, pieces, 1);
    check_samples(40);
    remove_file("phase-0.raw");
    CHECK_REFUSED("raw.h5: the values of /phase are in the external file "
                  "phase-0.raw");
    free(to);
    free(from);
}
