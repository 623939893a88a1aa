/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The error for every kind of bad data. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5io/h5.h"
#include "open.h"

static char *directory;
static open_setup_t setup;

static void start(void)
{
    open_begin(&directory, &setup, "*.h5");
}

static void stop(void)
{
    open_end(directory, &setup);
}

TestSuite(dataset_errors, .init = start, .fini = stop);

static double zero(int64_t row, int64_t element)
{
    (void)row;
    (void)element;
    return 0;
}

/* Write directory/name with inputs of [type] and shape, and targets [rows,
 * width]. */
static void write_other(const char *name, hid_t type, int ndim, hsize_t dim,
                        hsize_t width)
{
    const files_column_t columns[] = {
        {"/spins", ndim, {dim, 4}, type, zero},
        {"/phase", 1, {width}, H5T_STD_I8LE, zero}};
    char *path = files_path(directory, name);

    files_write(path, FILES_CONTIGUOUS, 0, 4, columns, 2);
    free(path);
}

Test(dataset_errors, no_shard_matches)
{
    OPEN_REFUSED(&setup, ERR_DATA, "no shard matches", directory, "*.h5");
    free(setup.patterns[0]);
    setup.patterns[0] = strdup("nowhere-*.h5");
    cr_assert_eq(chdir(directory), 0);
    OPEN_REFUSED(&setup, ERR_DATA, "no shard matches nowhere-*.h5 in directory",
                 directory);
    setup.shards.count = 0;
    OPEN_REFUSED(&setup, ERR_DATA, "the list of shards is empty");
}

Test(dataset_errors, one_pattern_of_two_matches_nothing)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    setup.patterns[1] = files_path(directory, "valid-*.h5");
    setup.shards.count = 2;
    OPEN_REFUSED(&setup, ERR_DATA, "no shard matches", "valid-*.h5");
}

Test(dataset_errors, not_a_file)
{
    char *path = files_path(directory, "sub.h5");

    cr_assert_eq(mkdir(path, 0777), 0);
    OPEN_REFUSED(&setup, ERR_DATA, "sub.h5 is not a file");
    rmdir(path);
    cr_assert_eq(mkfifo(path, 0666), 0);
    OPEN_REFUSED(&setup, ERR_DATA, "sub.h5 is not a file");
    free(path);
}

Test(dataset_errors, not_hdf5)
{
    char *path = files_path(directory, "text.h5");

    files_write_text(path, "a,b,c\n1,2,3\n", 12);
    OPEN_REFUSED(&setup, ERR_DATA, "text.h5 (12 bytes) is not an HDF5 file");
    files_write_text(path, "", 0);
    OPEN_REFUSED(&setup, ERR_DATA, "text.h5 is empty", "truncated to 0 bytes");
    free(path);
}

Test(dataset_errors, truncated_at_any_place)
{
    char *path = files_path(directory, "b.h5");
    int64_t bytes;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    open_write(directory, "b.h5", FILES_CONTIGUOUS, 4, 400);
    bytes = files_bytes(path);
    for (int64_t left = bytes - 1; left > 0; left -= bytes / 9) {
        char text[64];

        files_truncate(path, left);
        snprintf(text, sizeof text, "%lld of %lld bytes", (long long)left,
                 (long long)bytes);
        if (left > 100)
            OPEN_REFUSED(&setup, ERR_DATA, "b.h5 is truncated: ", text,
                         "copy it again");
        else
            OPEN_REFUSED(&setup, ERR_DATA, "b.h5", "truncated");
    }
    open_write(directory, "b.h5", FILES_CONTIGUOUS, 4, 400);
    files_truncate(path, 10);
    OPEN_REFUSED(&setup, ERR_DATA, "b.h5", "truncated");
    free(path);
}

Test(dataset_errors, truncated_while_it_is_read)
{
    const int64_t index[] = {399};
    char *path = files_path(directory, "a.h5");
    float input[OPEN_ELEMS];
    int64_t target;
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 400);
    dataset = open_dataset(&setup);
    files_truncate(path, 3000);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "a.h5 was truncated while"), "%s",
                       err.text);
    hdf5io_dataset_close(dataset);
    free(path);
}

/* A writer that was killed leaves a file that only looks like HDF5. */
Test(dataset_errors, writer_died)
{
    char *path = files_path(directory, "dead.h5");
    pid_t child = fork();
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        hsize_t rows = 100000;
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(1, &rows, NULL);

        H5Fflush(file, H5F_SCOPE_GLOBAL);
        H5Dcreate2(file, "/x", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT);
        raise(SIGKILL);
    }
    waitpid(child, &status, 0);
    files_truncate(path, 90);
    OPEN_REFUSED(&setup, ERR_DATA, "dead.h5", "truncated");
    free(path);
}

Test(dataset_errors, a_flipped_bit_in_a_compressed_chunk)
{
    const int64_t index[] = {0};
    char *path = files_path(directory, "a.h5");
    unsigned char bytes[64];
    float input[OPEN_ELEMS];
    int64_t target;
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;
    FILE *file;

    open_write(directory, "a.h5", FILES_GZIP, 0, 400);
    file = fopen(path, "r+e");
    /* Every zlib stream of this level starts with 0x78 0x5e. */
    for (long at = 0;
         fseek(file, at, SEEK_SET) == 0 && fread(bytes, 1, 16, file) == 16;
         at++) {
        if (bytes[0] != 0x78 || bytes[1] != 0x5e)
            continue;
        fseek(file, at + 6, SEEK_SET);
        fputc(bytes[6] ^ 0xff, file);
        fputc(bytes[7] ^ 0xff, file);
    }
    fclose(file);
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, index, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "a.h5: cannot read /spins from row 0"),
                       "%s", err.text);
    hdf5io_dataset_close(dataset);
    free(path);
}

Test(dataset_errors, missing_dataset)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    setup.input.path = (char *)"/spin";
    OPEN_REFUSED(&setup, ERR_DATA, "a.h5 has no dataset /spin; it holds",
                 "/phase, /spins, /temperature", "did you mean /spins?");
    setup.input.path = (char *)"magnetisation";
    OPEN_REFUSED(&setup, ERR_DATA, "no dataset /magnetisation");
}

Test(dataset_errors, datasets_in_groups_are_listed)
{
    char *path = files_path(directory, "deep.h5");
    hid_t file, group;

    open_write(directory, "deep.h5", FILES_CONTIGUOUS, 0, 4);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gcreate2(file, "/raw", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/spins", group, "images", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/raw", group, "cycle", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/lost", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Fclose(file);
    setup.input.path = (char *)"/raw/image";
    OPEN_REFUSED(&setup, ERR_DATA, "/raw/images", "did you mean /raw/images?");
    setup.input.path = (char *)"/raw";
    OPEN_REFUSED(&setup, ERR_DATA, "/raw is a group");
    free(path);
}

Test(dataset_errors, an_empty_file_of_hdf5)
{
    char *path = files_path(directory, "none.h5");

    files_write(path, FILES_CONTIGUOUS, 0, 0, NULL, 0);
    OPEN_REFUSED(&setup, ERR_DATA, "no dataset /spins",
                 "it holds no dataset at all");
    free(path);
}

Test(dataset_errors, no_numbers)
{
    char *path = files_path(directory, "a.h5");
    hid_t file, space, type, data;
    const hsize_t rows = 4;

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    space = H5Screate_simple(1, &rows, NULL);
    type = H5Tcopy(H5T_C_S1);
    data = H5Dcreate2(file, "/names", type, space, H5P_DEFAULT, H5P_DEFAULT,
                      H5P_DEFAULT);
    H5Dclose(data);
    H5Tclose(type);
    H5Sclose(space);
    space = H5Screate(H5S_SCALAR);
    data = H5Dcreate2(file, "/single", H5T_STD_I8LE, space, H5P_DEFAULT,
                      H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
    setup.input.path = (char *)"/names";
    OPEN_REFUSED(&setup, ERR_DATA, "a.h5: /names holds no numbers");
    setup.input.path = (char *)"/single";
    OPEN_REFUSED(&setup, ERR_DATA, "/single is a single value");
    free(path);
}

Test(dataset_errors, shapes_disagree_between_shards)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    write_other("b.h5", H5T_STD_I8LE, 2, 5, 1);
    OPEN_REFUSED(&setup, ERR_DATA, "shapes disagree: samples of /spins are",
                 "[3, 4] in", "a.h5, but [5, 4] in", "b.h5");
}

Test(dataset_errors, same_values_in_another_shape_disagree)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    write_other("b.h5", H5T_STD_I8LE, 1, 12, 1);
    OPEN_REFUSED(&setup, ERR_DATA, "[3, 4] in", "but [12] in");
}

Test(dataset_errors, the_model_takes_another_size)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    setup.config.inputs[0].elems = 784;
    setup.config.inputs[0].shape = "[1, 28, 28]";
    OPEN_REFUSED(&setup, ERR_DATA,
                 "a.h5: samples of /spins are [3, 4] (12 values), but "
                 "model.input is [1, 28, 28] (784 values)");
}

Test(dataset_errors, targets_of_another_size)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    setup.target.path = (char *)"/temperature";
    OPEN_REFUSED(&setup, ERR_DATA, "targets of /temperature are [2] (2 values)",
                 "1 class number a sample");
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.config.targets[0].elems = 3;
    OPEN_REFUSED(&setup, ERR_DATA, "but the model gives 3 values");
}

/* The message starts with the option that needs the data and its place in the
 * run file. */
Test(dataset_errors, what_does_not_fit_is_told_with_its_place)
{
    hdf5io_want_t *input = &setup.config.inputs[0];
    hdf5io_want_t *target = &setup.config.targets[0];

    open_write(directory, "a.h5", FILES_GZIP, 1, 4);
    input->place = "run.yaml:5:10";
    target->place = "run.yaml:9:7: loss mse";
    input->name = "image";
    input->elems = 3;
    input->shape = "[3]";
    OPEN_REFUSED(&setup, ERR_DATA,
                 "run.yaml:5:10: ", "model.input.image is [3]");
    input->elems = OPEN_ELEMS;
    setup.target.path = (char *)"/temperature";
    OPEN_REFUSED(&setup, ERR_DATA, "run.yaml:9:7: loss mse: ",
                 "a.h5: targets of /temperature are [2]");
    target->elems = 2;
    OPEN_REFUSED(&setup, ERR_DATA, "run.yaml:9:7: loss mse: ",
                 "targets of /temperature are real numbers (the first sample "
                 "holds 1.25), but the loss takes class numbers from 0 to 2");
    target->as = HDF5IO_AS_REALS;
    setup.config.inputs[1] = *target;
    setup.config.inputs[1].as = HDF5IO_AS_TOKENS;
    setup.config.inputs[1].name = "heat";
    setup.config.input_count = 2;
    setup.target.scale = 0.5;
    OPEN_REFUSED(&setup, ERR_CONFIG,
                 "data.input.heat: scale 0.5 and shift 0: tokens take scale 1");
}

static void write_uneven(const char *name, int64_t inputs, int64_t targets)
{
    const files_column_t input = {"/spins", 2, {3, 4}, H5T_STD_I8LE, zero};
    char *path = files_path(directory, name);
    hsize_t rows = (hsize_t)targets;
    hid_t file, space, data;

    files_write(path, FILES_CONTIGUOUS, 0, inputs, &input, 1);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    space = H5Screate_simple(1, &rows, NULL);
    data = H5Dcreate2(file, "/phase", H5T_STD_I8LE, space, H5P_DEFAULT,
                      H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
    free(path);
}

Test(dataset_errors, more_inputs_than_targets)
{
    write_uneven("a.h5", 10, 9);
    OPEN_REFUSED(
        &setup, ERR_DATA,
        "a.h5: /spins has 10 samples, /phase has 9: expected the same");
}

Test(dataset_errors, no_samples_at_all)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 0);
    open_write(directory, "b.h5", FILES_CHUNKED, 0, 0);
    OPEN_REFUSED(&setup, ERR_DATA, "a.h5",
                 "none of the 2 shards holds a sample");
}

Test(dataset_errors, classes_take_no_scale)
{
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    setup.target.scale = 2;
    OPEN_REFUSED(&setup, ERR_CONFIG, "data.target", "scale 2");
    setup.target.scale = 1;
    setup.target.shift = 0.5;
    OPEN_REFUSED(&setup, ERR_CONFIG, "shift 0.5");
}

static double bad_label(int64_t row, int64_t element)
{
    (void)element;
    return row == 17 ? 2.5 : row == 23 ? -1 : row == 29 ? NAN : 1;
}

/* Reading [row] of the bad labels must fail with a message that contains
 * [text]. */
static void check_label(hdf5io_dataset_t *dataset, int64_t row,
                        const char *text)
{
    float input[OPEN_ELEMS];
    int64_t target = 77;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "a.h5: row "), "%s", err.text);
    cr_assert_eq(target, 77);
}

Test(dataset_errors, label_out_of_range)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, H5T_STD_I8LE, zero},
        {"/phase", 0, {0}, H5T_IEEE_F64LE, bad_label}};
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;

    files_write(path, FILES_CONTIGUOUS, 0, 30, columns, 2);
    dataset = open_dataset(&setup);
    check_label(dataset, 17,
                "row 17 of /phase holds label 2.5: expected a whole number "
                "from 0 to 2, as the model has 3 classes");
    check_label(dataset, 23, "row 23 of /phase holds label -1");
    check_label(dataset, 29, "label nan");
    hdf5io_dataset_close(dataset);
    setup.config.targets[0].limit = 1;
    dataset = open_dataset(&setup);
    check_label(dataset, 3, "label 1: expected a whole number from 0 to 0");
    hdf5io_dataset_close(dataset);
    setup.config.targets[0].limit = 2;
    setup.target.shift = -2;
    dataset = open_dataset(&setup);
    check_label(dataset, 3, "label 1: expected a whole number from 2 to 3");
    hdf5io_dataset_close(dataset);
    free(path);
}

static double tokens(int64_t row, int64_t element)
{
    return row == 4 && element == 7 ? 12 : row == 5 ? 0.5 : (double)element;
}

Test(dataset_errors, token_out_of_range)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, H5T_IEEE_F32BE, tokens},
        {"/phase", 0, {0}, H5T_STD_I8LE, zero}};
    char *path = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    int32_t input[2][OPEN_ELEMS];
    int64_t target[2];
    err_t err = ERR_INIT;

    files_write(path, FILES_GZIP, 0, 30, columns, 2);
    setup.config.inputs[0].as = HDF5IO_AS_TOKENS;
    setup.config.inputs[0].limit = 12;
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, (int64_t[]){29, 3}, 2, input,
                                     target, &err),
                 ERR_OK, "%s", err.text);
    for (int i = 0; i < OPEN_ELEMS; i++)
        cr_assert(input[0][i] == i && input[1][i] == i);
    check_label(dataset, 4,
                "row 4 of /spins holds token 12 at position 7: expected a "
                "whole number from 0 to 11, as the model has 12 tokens");
    check_label(dataset, 5, "token 0.5 at position 0");
    hdf5io_dataset_close(dataset);
    setup.input.shift = 1;
    dataset = open_dataset(&setup);
    check_label(dataset, 3,
                "token 11 at position 11: expected a whole number "
                "from -1 to 10");
    hdf5io_dataset_close(dataset);
    setup.input.scale = 2;
    OPEN_REFUSED(&setup, ERR_CONFIG, "data.input: scale 2 and shift 1: tokens");
    free(path);
}

Test(dataset_errors, rows_are_counted_within_their_shard)
{
    const files_column_t columns[] = {
        {"/spins", 1, {12}, H5T_STD_I8LE, zero},
        {"/phase", 0, {0}, H5T_IEEE_F64LE, bad_label}};
    char *good = files_path(directory, "0.h5");
    char *bad = files_path(directory, "a.h5");
    hdf5io_dataset_t *dataset;
    int64_t row = 1000 + 17, target;
    float input[OPEN_ELEMS];
    err_t err = ERR_INIT;

    files_write(good, FILES_CONTIGUOUS, 100, 1000, columns, 2);
    files_write(bad, FILES_GZIP, 0, 30, columns, 2);
    dataset = open_dataset(&setup);
    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "a.h5: row 17 of"), "%s", err.text);
    row = 1030;
    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "sample 1030"), "%s", err.text);
    hdf5io_dataset_close(dataset);
    free(bad);
    free(good);
}

/* Values of shape [classes 3, positions 2] that sum to 1 along the classes. Row
 * 1 has a NaN, row 2 a number below 0, row 3 another sum at the second
 * position; row 4 sums to 1 along the last dimension. */
static double share(int64_t row, int64_t element)
{
    static const double rows[][6] = {{0.5, 0.2, 0.25, 0.3, 0.25, 0.5},
                                     {0.5, 0.2, 0.25, NAN, 0.25, 0.5},
                                     {0.5, 0.2, 0.25, 0.3, -0.25, 0.5},
                                     {0.5, 0.2, 0.25, 0.3, 0.25, 0.502},
                                     {0.5, 0.5, 0.25, 0.75, 0, 1}};

    return rows[row][element];
}

/* Reading [row] fails with [sentence]; NULL: it succeeds. */
static void check_share(const char *sentence, int64_t row)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);
    float input[OPEN_ELEMS], target[6] = {0};
    err_t err = ERR_INIT;
    err_code_t code =
        hdf5io_dataset_read(dataset, &row, 1, input, target, &err);

    cr_expect_eq(code, sentence == NULL ? ERR_OK : ERR_DATA, "%s", err.text);
    if (sentence != NULL)
        cr_expect_not_null(strstr(err.text, sentence), "%s", err.text);
    hdf5io_dataset_close(dataset);
}

Test(dataset_errors, probabilities_sum_to_1_as_the_loss_wants)
{
    const files_column_t columns[] = {{"/spins", 1, {12}, H5T_STD_I8LE, zero},
                                      {"/p", 2, {3, 2}, H5T_IEEE_F32LE, share}};
    char *path = files_path(directory, "a.h5");
    hdf5io_want_t *want = &setup.config.targets[0];

    files_write(path, FILES_CONTIGUOUS, 0, 5, columns, 2);
    setup.target.path = (char *)"/p";
    want->as = HDF5IO_AS_REALS;
    want->elems = 6;
    check_share(NULL, 3);
    want->shares = "make them so";
    want->sums[0] = (hdf5io_sum_t){.count = 3, .step = 2};
    check_share(NULL, 0);
    check_share("a.h5: row 1 of /p holds nan at position 3: make them so", 1);
    check_share("a.h5: row 2 of /p holds -0.25 at position 4: make them so", 2);
    check_share("a.h5: row 3 of /p sums to 1.002: make them so", 3);
    check_share("row 4 of /p sums to 0.75: make them so", 4);
    want->sums[1] = (hdf5io_sum_t){.count = 2, .step = 1};
    check_share(NULL, 4);
    check_share(NULL, 0);
    free(path);
}

/* With more shards than descriptors, shards are read in turn
 * (test_dataset_use); with a single descriptor nothing can be read. */
Test(dataset_errors, too_many_files)
{
    struct rlimit limit = {40, 40};
    int taken[40], count = 0;

    open_write(directory, "part-0.h5", FILES_CONTIGUOUS, 0, 3);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (count < 40 && (taken[count] = dup(0)) >= 0)
        count++;
    close(taken[--count]); /* one descriptor for the directory, then one for the
                              file */
    OPEN_REFUSED(&setup, ERR_IO, "part-0", "too many open files", "limit of 40",
                 "hard limit 40", "ulimit -Hn");
    while (count > 0)
        close(taken[--count]);
}

Test(dataset_errors, a_file_that_may_not_be_read)
{
    char *path = files_path(directory, "a.h5");

    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 4);
    cr_assert_eq(chmod(path, 0), 0);
    if (geteuid() == 0) {
        cr_assert_eq(chmod(directory, 0755), 0);
        cr_assert_eq(setegid(65534), 0);
        cr_assert_eq(seteuid(65534), 0);
    }
    OPEN_REFUSED(&setup, ERR_DATA, "a.h5: Permission denied", "belongs to",
                 "has mode 0000");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(setegid(getgid()), 0);
    free(path);
}
