/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data info` and `verify` on difficult files: deeply nested, huge, with
 * links, virtual, damaged. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "cmd/data_info.h"
#include "cmd/data_verify.h"
#include "hdf5io/attribute.h"
#include "hdf5io/files.h"
#include "hdf5io/h5.h"

static char *directory;

static void start(void)
{
    h5_lock();
    h5_unlock();
    directory = files_make();
}

static void stop(void)
{
    files_remove(directory);
}

TestSuite(look, .init = start, .fini = stop, .timeout = 120);

static hid_t create(const char *name)
{
    return files_create(directory, name);
}

/* Add a dataset of [rows] int32 in chunks of [chunk] rows (0: contiguous). Its
 * first [written] rows get the values 1, 2, ... */
static void add(hid_t at, const char *name, hsize_t rows, hsize_t chunk,
                hsize_t written)
{
    const hsize_t zero = 0;
    hid_t space = H5Screate_simple(1, &rows, NULL), set;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    int values[64];

    if (chunk > 0)
        H5Pset_chunk(list, 1, &chunk);
    set = H5Dcreate2(at, name, H5T_STD_I32LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    cr_assert_geq(set, 0);
    for (int i = 0; i < 64; i++)
        values[i] = i + 1;
    if (written > 0) {
        hid_t memory = H5Screate_simple(1, &written, NULL);

        H5Sselect_hyperslab(space, H5S_SELECT_SET, &zero, NULL, &written, NULL);
        cr_assert_geq(
            H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values),
            0);
        H5Sclose(memory);
    }
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
}

/* The output of info for the file [name]; to be freed. */
static char *info(const char *name, err_code_t expected)
{
    char *path = files_path(directory, name);
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(cmd_data_info(path, &text, &err), expected, "%s", err.text);
    free(path);
    if (expected == ERR_OK)
        return text.text;
    str_buf_free(&text);
    return str_dup(err.text);
}

static void check_info(const char *name, err_code_t expected,
                       const char *wanted)
{
    char *text = info(name, expected);

    cr_assert_not_null(strstr(text, wanted), "\"%.300s\" lacks \"%s\"", text,
                       wanted);
    free(text);
}

static cmd_verify_report_t verify_ok(const char *name)
{
    char *path = files_path(directory, name);
    cmd_verify_report_t report = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(cmd_data_verify(path, 10, &report, &err), ERR_OK, "%s",
                 err.text);
    free(path);
    return report;
}

static void verify_bad(const char *name, const char *wanted)
{
    char *path = files_path(directory, name);
    cmd_verify_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(cmd_data_verify(path, 10, &report, &err), ERR_DATA, "%s",
                 err.text);
    cr_assert_not_null(strstr(err.text, wanted), "\"%s\" lacks \"%s\"",
                       err.text, wanted);
    free(path);
}

/* This used to take more than a minute for 2000 nested groups. */
Test(look, deep_groups)
{
    hid_t file = create("deep.h5"), group = H5Gopen2(file, "/", H5P_DEFAULT);
    clock_t begin;

    for (int i = 0; i < 2000; i++) {
        hid_t next =
            H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

        H5Gclose(group);
        group = next;
    }
    add(group, "end", 3, 0, 3);
    H5Gclose(group);
    H5Fclose(file);
    begin = clock();
    check_info("deep.h5", ERR_OK, "/g/g/g/end");
    cr_assert_eq(verify_ok("deep.h5").bytes, 12);
    cr_assert_lt(clock() - begin, 20 * CLOCKS_PER_SEC, "of processor time");
}

Test(look, groups_in_a_circle_and_with_two_names)
{
    hid_t file = create("a.h5"), group, inner;

    group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    inner = H5Gcreate2(group, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add(inner, "x", 3, 0, 3);
    H5Lcreate_hard(file, "g", inner, "back", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", inner, "root", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g", inner, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    H5Gclose(group);
    H5Fclose(file);
    check_info("a.h5", ERR_OK, "/g/inner/x");
    cr_assert_eq(verify_ok("a.h5").datasets, 1);
}

/* Rows for which the file has no bytes are not read, whatever their number. */
Test(look, rows_that_were_never_written)
{
    hid_t file = create("a.h5");

    add(file, "endless", (hsize_t)1 << 40, 4096, 0);
    add(file, "sparse", (hsize_t)1 << 40, 16, 33);
    add(file, "flat", (hsize_t)1 << 40, 0, 0);
    H5Fclose(file);
    cr_assert_eq(verify_ok("a.h5").bytes, 3 * 16 * 4, "three chunks");
}

Test(look, where_links_lead)
{
    hid_t file = create("part.h5");

    add(file, "x", 5, 0, 5);
    H5Fclose(file);
    file = create("a.h5");
    H5Lcreate_external("part.h5", "/x", file, "there", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/there", file, "too", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    check_info("a.h5", ERR_OK, "contiguous -> part.h5:/x");
    check_info("a.h5", ERR_OK, "contiguous -> /there");
    cr_assert_eq(verify_ok("a.h5").datasets, 2);
    file = create("part.h5");
    H5Fclose(file);
    check_info("a.h5", ERR_DATA,
               "/there is an external link to part.h5:/x, but");
    verify_bad("a.h5", "part.h5 has no such object");
}

Test(look, a_virtual_dataset_without_its_source)
{
    hsize_t rows = 5;
    hid_t file = create("a.h5"), space = H5Screate_simple(1, &rows, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_virtual(list, space, "part.h5", "/x", space);
    H5Dclose(H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, list,
                        H5P_DEFAULT));
    H5Fclose(file);
    check_info("a.h5", ERR_DATA, "/v takes values from part.h5:/x, but");
    verify_bad("a.h5", "/v takes values from part.h5:/x, but");
    file = create("part.h5");
    add(file, "x", 5, 0, 5);
    H5Fclose(file);
    check_info("a.h5", ERR_OK, "virtual");
    cr_assert_eq(verify_ok("a.h5").bytes, 20);
    /* A virtual dataset that is its own source is refused. */
    file = create("a.h5");
    H5Pclose(list);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, ".", "/v", space);
    H5Dclose(H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, list,
                        H5P_DEFAULT));
    H5Fclose(file);
    check_info("a.h5", ERR_DATA, "leads back to itself");
    verify_bad("a.h5", "leads back to itself");
    H5Pclose(list);
    H5Sclose(space);
}

/* An attribute with many values is not read into memory for one value. */
Test(look, large_attributes)
{
    hsize_t count = 4000;
    hid_t file = create("a.h5"), space = H5Screate_simple(1, &count, NULL);
    hid_t tiny = H5Tcopy(H5T_IEEE_F32LE);
    double bound = 0, many[4000] = {0};
    const retry_t once = {0};
    char *path = files_path(directory, "a.h5");
    err_t err = ERR_INIT;
    hid_t attribute;

    attribute = H5Acreate2(file, "bound_accuracy", H5T_IEEE_F64LE, space,
                           H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_DOUBLE, many);
    H5Aclose(attribute);
    H5Sclose(space);
    /* eight floats of one byte, as large as one double */
    H5Tset_fields(tiny, 7, 4, 3, 0, 3);
    H5Tset_ebias(tiny, 7);
    H5Tset_size(tiny, 1);
    count = 8;
    space = H5Screate_simple(1, &count, NULL);
    attribute = H5Acreate2(file, "tiny", tiny, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(attribute, 0);
    H5Awrite(attribute, H5T_NATIVE_DOUBLE, many);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(tiny);
    add(file, "x", 5, 0, 5);
    H5Fclose(file);
    check_info("a.h5", ERR_OK, "tiny                  (attribute)");
    check_info("a.h5", ERR_OK, "bound_accuracy        (attribute)");
    cr_assert_eq(
        hdf5io_attribute_read(path, "bound_accuracy", &once, &bound, &err),
        ERR_DATA);
    cr_assert_not_null(strstr(err.text, "bound_accuracy"), "%s", err.text);
    free(path);
}

/* Long work reports its progress on stderr. */
Test(look, progress_of_long_work)
{
    char *path = files_path(directory, "a.h5");
    char *log = files_path(directory, "log"), line[1024] = "";
    cmd_verify_report_t report;
    err_t err = ERR_INIT;
    hid_t file = create("a.h5");
    FILE *said;

    add(file, "x", 5, 0, 5);
    H5Fclose(file);
    cr_assert_not_null(freopen(log, "w", stderr));
    cr_assert_eq(cmd_data_verify(path, 0, &report, &err), ERR_OK);
    fflush(stderr);
    said = fopen(log, "re");
    cr_assert_not_null(fgets(line, sizeof line, said));
    fclose(said);
    cr_assert_not_null(strstr(line, "/x: 20 B of 20 B read"), "%s", line);
    free(log);
    free(path);
}
