/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Flips 200 bits in every kind of dataset file, one at a time, at places that
 * are the same in every run. HDF5 has no checksum for plain storage, so a flip
 * may change a number (which the hash of the data detects, see `data` in
 * docs/FORMATS.md), but not the number or the size of the samples.
 *
 * HDF5 1.10 crashes on some damaged headers, so each flip is tested in its own
 * process. A few flips may end it inside the library; a run then ends with a
 * signal, not with other results. Sanitizer reports about the library are
 * ignored, those about our code are not.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "hdf5io/h5.h"
#include "hdf5io/open.h"

#define FLIPS 200
#define ROWS 40

static char *directory;
static open_setup_t setup;

static void start(void)
{
    h5_lock(); /* initializes HDF5 as a program does before its first file */
    h5_unlock();
    open_begin(&directory, &setup, "master.h5");
}

static void stop(void)
{
    open_end(directory, &setup);
}

TestSuite(flips_data, .init = start, .fini = stop, .timeout = 300);

/* Exit statuses of a try, none of which a sanitizer or a signal uses. */
enum { TRY_READ = 40, TRY_REFUSED, TRY_WRONG, TRY_CODE };

/* Open master.h5 and read all samples. */
static int try_here(void)
{
    int64_t index[ROWS], target[ROWS];
    float input[ROWS * OPEN_ELEMS];
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;
    err_code_t code = hdf5io_dataset_open(&setup.config, &dataset, &err);

    for (int i = 0; i < ROWS; i++)
        index[i] = i;
    if (code == ERR_OK) {
        if (hdf5io_dataset_samples(dataset) != ROWS)
            return TRY_WRONG;
        code = hdf5io_dataset_read(dataset, index, ROWS, input, target, &err);
    }
    if (code == ERR_OK)
        return TRY_READ;
    return (code == ERR_DATA || code == ERR_UNAVAILABLE) && err.text[0] != '\0'
               ? TRY_REFUSED
               : TRY_CODE;
}

/* Is the sanitizer report [said] about HDF5? The answer depends on the first
 * function in it that belongs neither to the sanitizer nor to the C library.
 * Without a report (a signal) the answer is yes, since nothing is known. */
static bool is_of_library(const char *said)
{
    const char *at = strstr(said, "    #0 ");

    if (at == NULL)
        return strstr(said, "runtime error:") == NULL;
    while (at != NULL) {
        const size_t length = strcspn(at, "\n");
        char frame[512];

        snprintf(frame, sizeof frame, "%.*s", (int)length, at);
        if (strstr(frame, "__interceptor_") == NULL &&
            strstr(frame, "libasan") == NULL &&
            strstr(frame, "sanitizer_common") == NULL &&
            strstr(frame, "libc.so") == NULL &&
            strstr(frame, "/sysdeps/") == NULL)
            return strstr(frame, "libhdf5") != NULL;
        at = strstr(at + length, "    #");
    }
    return false;
}

/* Run try_here in a child process. An alarm ends a child that hangs, and the
 * test then fails. */
static int try_apart(void)
{
    char *log = files_path(directory, "said"), *said = NULL;
    pid_t child = fork();
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        cr_assert_not_null(freopen(log, "w", stderr));
        alarm(10);
        _exit(try_here());
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(file_read(log, &said, NULL, NULL), ERR_OK);
    cr_assert(is_of_library(said), "%s", said);
    free(said);
    free(log);
    cr_assert_not(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM,
                  "it hangs");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* Flip bits of the file [name], one at a time. Some must be refused, and only
 * few may crash HDF5. */
static void flip_all(const char *name)
{
    char *path = files_path(directory, name), *data;
    err_t err = ERR_INIT;
    int refused = 0, died = 0;
    size_t bytes;

    cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(try_apart(), TRY_READ, "%s", name);
    for (int i = 0; i < FLIPS; i++) {
        const uint64_t where = hash_bytes(&i, sizeof i);
        char *byte = &data[(where >> 3) % bytes];
        int outcome;

        *byte = (char)(*byte ^ (1 << (where & 7)));
        files_write_text(path, data, bytes);
        *byte = (char)(*byte ^ (1 << (where & 7)));
        outcome = try_apart();
        cr_expect(outcome != TRY_WRONG && outcome != TRY_CODE,
                  "flip %d of %s: outcome %d", i, name, outcome);
        refused += outcome == TRY_REFUSED;
        died += outcome < TRY_READ || outcome > TRY_CODE;
    }
    cr_expect_gt(refused, 0, "%s", name);
    cr_expect_leq(died, FLIPS / 20, "%s: %d", name, died);
    files_write_text(path, data, bytes);
    free(data);
    free(path);
}

Test(flips_data, of_shards_in_every_layout)
{
    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        open_write(directory, "master.h5", (files_layout_t)layout, 0, ROWS);
        flip_all("master.h5");
    }
}

/* A file of links and the file of their targets. */
Test(flips_data, of_links)
{
    hid_t file;

    open_write(directory, "data.h5", FILES_GZIP, 0, ROWS);
    file =
        H5Fcreate(setup.patterns[0], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("data.h5", "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external("data.h5", "/phase", file, "there", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/there", file, "phase", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    flip_all("master.h5");
    flip_all("data.h5");
}

/* Make the virtual dataset [path] in master.h5 from the halves in a.h5 and
 * b.h5. */
static void map_halves(hid_t file, const char *path, hid_t type, int ndim,
                       const hsize_t *dims)
{
    const hsize_t start[2][3] = {{0}, {ROWS / 2}};
    hsize_t half[3] = {ROWS / 2, dims[1], dims[2]};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(ndim, dims, NULL);
    hid_t from = H5Screate_simple(ndim, half, NULL);

    for (int i = 0; i < 2; i++) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start[i], NULL, half, NULL);
        H5Pset_virtual(list, space, i == 0 ? "a.h5" : "b.h5", path, from);
    }
    H5Sselect_all(space);
    H5Dclose(
        H5Dcreate2(file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(from);
    H5Sclose(space);
    H5Pclose(list);
}

Test(flips_data, of_virtual_datasets)
{
    const hsize_t spins[] = {ROWS, 3, 4}, phase[] = {ROWS, 0, 0};
    hid_t file;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, ROWS / 2);
    open_write(directory, "b.h5", FILES_CHUNKED, ROWS / 2, ROWS / 2);
    file =
        H5Fcreate(setup.patterns[0], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    map_halves(file, "/spins", H5T_STD_I8LE, 3, spins);
    map_halves(file, "/phase", H5T_STD_I64LE, 1, phase);
    H5Fclose(file);
    flip_all("master.h5");
    flip_all("b.h5");
}
