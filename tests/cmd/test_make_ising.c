/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A small data set is made, read back and damaged. */
#include "cmd/make_ising.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "cmd/data_info.h"
#include "cmd/data_ising.h"
#include "cmd/data_verify.h"
#include "hdf5io/h5.h"

static char scratch[64];

static void scratch_make(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/cddp-test-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

static void scratch_remove(void)
{
    err_t err = ERR_INIT;

    cr_expect_eq(file_remove_tree(scratch, &err), ERR_OK, "%s", err.text);
}

TestSuite(make, .init = scratch_make, .fini = scratch_remove);

static char *in_scratch(const char *name)
{
    return str_printf("%s/%s", scratch, name);
}

static cmd_ising_report_t make(const char *name, uint64_t seed, int threads)
{
    char *directory = in_scratch(name);
    cmd_ising_config_t config = {.directory = directory,
                                 .seed = seed,
                                 .train = 150,
                                 .valid = 90,
                                 .shards = 4,
                                 .threads = threads};
    cmd_ising_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(cmd_make_ising(&config, &report, &err), ERR_OK, "%s",
                 err.text);
    free(directory);
    return report;
}

static uint64_t hash_of(const char *name)
{
    char *path = in_scratch(name);
    uint64_t hash, bytes;
    err_t err = ERR_INIT;

    cr_assert_eq(hash_file(path, &hash, &bytes, &err), ERR_OK, "%s", err.text);
    free(path);
    return hash;
}

/* Wait for the next second. HDF5's time stamps, if any, count whole seconds, so
 * a file made after this has another stamp. */
static void stamp_differs(void)
{
    struct timespec next;

    cr_assert_eq(clock_gettime(CLOCK_REALTIME, &next), 0);
    next = (struct timespec){.tv_sec = next.tv_sec + 1};
    cr_assert_eq(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &next, NULL),
                 0);
}

Test(make, same_bytes_on_any_number_of_threads)
{
    const char *const files[] = {"train-00.h5", "train-03.h5", "valid-00.h5",
                                 "valid-01.h5"};

    make("a", 1, 1);
    stamp_differs();
    make("b", 1, 3);
    make("c", 2, 2);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char a[32], b[32], c[32];

        snprintf(a, sizeof a, "a/%s", files[i]);
        snprintf(b, sizeof b, "b/%s", files[i]);
        snprintf(c, sizeof c, "c/%s", files[i]);
        cr_expect_eq(hash_of(a), hash_of(b), "%s", files[i]);
        cr_expect_neq(hash_of(a), hash_of(c), "%s: the seed counts", files[i]);
    }
}

/* Read dataset [set] of [file] as [type] into [out]; returns the number of
 * rows. */
static int read_set(hid_t file, const char *set, hid_t type, void *out)
{
    hid_t data = H5Dopen2(file, set, H5P_DEFAULT), space;
    hsize_t dims[3] = {0};

    cr_assert(data >= 0, "%s", set);
    space = H5Dget_space(data);
    H5Sget_simple_extent_dims(space, dims, NULL);
    cr_assert(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Sclose(space);
    H5Dclose(data);
    return (int)dims[0];
}

static double read_bound(hid_t file)
{
    hid_t attribute = H5Aopen(file, "bound_accuracy", H5P_DEFAULT);
    double bound = -1;

    cr_assert(attribute >= 0);
    cr_assert(H5Aread(attribute, H5T_NATIVE_DOUBLE, &bound) >= 0);
    H5Aclose(attribute);
    return bound;
}

typedef struct loaded {
    int count;
    int8_t spins[90][CMD_ISING_SITES];
    int8_t phase[90];
    float temperature[90], energy[90];
    double bound;
} loaded_t;

static void load_valid(loaded_t *to)
{
    for (int shard = 0; shard < 2; shard++) {
        char *path = str_printf("%s/a/valid-%02d.h5", scratch, shard);
        hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        int at = to->count;

        cr_assert(file >= 0);
        to->count += read_set(file, "/spins", H5T_NATIVE_SCHAR, to->spins[at]);
        read_set(file, "/phase", H5T_NATIVE_SCHAR, to->phase + at);
        read_set(file, "/temperature", H5T_NATIVE_FLOAT, to->temperature + at);
        read_set(file, "/energy", H5T_NATIVE_FLOAT, to->energy + at);
        to->bound = read_bound(file);
        H5Fclose(file);
        free(path);
    }
}

Test(make, valid_shards_hold_samples_and_their_bound)
{
    cmd_ising_report_t report = make("a", 1, 2);
    loaded_t *all = calloc(1, sizeof *all);
    int best = 0;

    load_valid(all);
    cr_assert_eq(all->count, 90);
    for (int i = 0; i < all->count; i++) {
        int below = (double)all->temperature[i] < cmd_ising_critical();

        cr_expect_eq(all->phase[i], below);
        cr_expect_eq(all->energy[i],
                     (float)cmd_ising_energy(all->spins[i]) / CMD_ISING_SITES);
        for (int k = 0; k < CMD_ISING_SITES; k++)
            cr_assert(all->spins[i][k] == 1 || all->spins[i][k] == -1);
    }
    /* Try all thresholds among the possible energies. */
    for (int threshold = -2049; threshold <= 2048; threshold++) {
        int right = 0;

        for (int i = 0; i < all->count; i++)
            right += (cmd_ising_energy(all->spins[i]) <= threshold) ==
                     (all->phase[i] == 1);
        best = right > best ? right : best;
    }
    cr_expect_float_eq(all->bound, best / 90.0, 1e-12);
    cr_expect_float_eq(report.energy_bound, best / 90.0, 1e-12);
    cr_expect(report.magnet_bound > 0.85 && report.magnet_bound <= 1);
    cr_expect_eq(report.train_shards, 4);
    cr_expect_eq(report.valid_shards, 2);
    free(all);
}

Test(make, old_shards_are_refused_and_replaced_by_force)
{
    char *directory = in_scratch("a");
    cmd_ising_config_t config = {.directory = directory,
                                 .seed = 1,
                                 .train = 3,
                                 .valid = 2,
                                 .shards = 1,
                                 .threads = 1};
    cmd_ising_report_t report;
    err_t err = ERR_INIT;
    char *last = in_scratch("a/train-03.h5");

    make("a", 1, 1);
    cr_expect_eq(cmd_make_ising(&config, &report, &err), ERR_USAGE);
    cr_expect_not_null(strstr(err.text, "train-00.h5"));
    cr_expect_not_null(strstr(err.text, "--force"));
    cr_expect_eq(access(last, F_OK), 0);
    config.force = true;
    cr_expect_eq(cmd_make_ising(&config, &report, &err), ERR_OK);
    cr_expect_neq(access(last, F_OK), 0, "a shard of the old data is left");
    free(last);
    free(directory);
}

Test(make, directory_that_cannot_be_written_is_named)
{
    char *file = in_scratch("file"), *below = in_scratch("file/data");
    cmd_ising_config_t config = {
        .directory = below, .train = 1, .valid = 1, .shards = 1, .threads = 1};
    cmd_ising_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(file, "x", 1, &err), ERR_OK);
    cr_expect_eq(cmd_make_ising(&config, &report, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "file"), "%s", err.text);
    free(below);
    free(file);
}

Test(make, info_describes_a_shard)
{
    char *path = in_scratch("a/valid-00.h5");
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    make("a", 1, 1);
    cr_assert_eq(cmd_data_info(path, &text, &err), ERR_OK, "%s", err.text);
    cr_expect_not_null(strstr(text.text, "[45, 32, 32] contiguous"), "%s",
                       text.text);
    cr_expect_not_null(strstr(text.text, "bound_accuracy"));
    cr_expect_not_null(strstr(text.text, "float32"));
    str_buf_free(&text);
    free(path);
}

Test(make, verify_reads_all_and_finds_damage)
{
    char *path = in_scratch("a/train-00.h5"), *no = in_scratch("no.h5");
    cmd_verify_report_t report;
    err_t err = ERR_INIT;

    make("a", 1, 1);
    cr_assert_eq(cmd_data_verify(path, 10, &report, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(report.datasets, 4);
    cr_expect_eq(report.bytes, 37 * (CMD_ISING_SITES + 1 + 4 + 4));
    cr_expect_eq(report.hash, hash_of("a/train-00.h5"));
    cr_assert_eq(truncate(path, 20000), 0);
    cr_expect_eq(cmd_data_verify(path, 10, &report, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, "train-00.h5"), "%s", err.text);
    cr_expect_neq(cmd_data_verify(no, 10, &report, &err), ERR_OK);
    cr_expect_not_null(strstr(err.text, "no.h5"), "%s", err.text);
    free(no);
    free(path);
}
