/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The format says what a map may hold; each case breaks one of its rules. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/files.h"
#include "hdf5io/safetensors.h"

#define T(name, type, shape, offsets)                       \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape \
    ",\"data_offsets\":" offsets "}"

typedef struct map_case {
    const char *map;
    uint64_t bytes;   /* that follow the map */
    const char *word; /* of the sentence; NULL: it is accepted */
} map_case_t;

static const map_case_t cases[] = {
    {"{}", 0, NULL},
    {"{}   ", 0, NULL},
    {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "I64", "[]", "[8,16]") "}",
     16, NULL},
    {"{" T("b", "I64", "[]", "[8,16]") "," T("a", "F32", "[2]", "[0,8]") "}",
     16, NULL},
    {"{" T("a", "F32", "[0,5]", "[0,0]") "," T("b", "U8", "[3]", "[0,3]") "}",
     3, NULL},
    {"", 0, "begin with {"},
    {" {}", 0, "begin with {"},
    {"[]", 0, "begin with {"},
    {"{", 0, "JSON"},
    {"{}x", 0, "JSON"},
    {"{" T("a\\u0000", "U8", "[1]", "[0,1]") "}", 1, "JSON"},
    {"{" T("a", "U8", "[1]", "[0,1]") "," T("a", "U8", "[1]", "[1,2]") "}", 2,
     "JSON"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"{\"__metadata__\":1}", 0, "__metadata__"},
    {"{\"a\":1}", 0, "tensor a"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "tensor a"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"offsets\":[0,1]}}", 1,
     "tensor a"},
    {"{" T("a", "F31", "[1]", "[0,4]") "}", 4, "F31"},
    {"{" T("a", "F32", "7", "[0,4]") "}", 4, "no shape"},
    {"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "dimensions"},
    {"{" T("a", "F32", "[-1]", "[0,4]") "}", 4, "no count"},
    {"{" T("a", "F32", "[1.0]", "[0,4]") "}", 4, "no count"},
    {"{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, "elements"},
    {"{" T("a", "F64", "[4611686018427387904]", "[0,0]") "}", 0, "bytes"},
    {"{" T("a", "U8", "[99999999999999999999]", "[0,0]") "}", 0, "JSON"},
    {"{" T("a", "F32", "[1]", "[0]") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[1]", "[0,4,8]") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[1]", "[4,0]") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[1]", "[-4,0]") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[1]", "[0,5]") "}", 5, "expected 4"},
    {"{" T("a", "U8", "[1]", "[1,2]") "}", 2, "begins at byte 1"},
    {"{" T("a", "U8", "[2]", "[0,2]") "," T("b", "U8", "[2]", "[1,3]") "}", 3,
     "begins at byte 1"},
    {"{" T("a", "U8", "[2]", "[0,2]") "," T("b", "U8", "[2]", "[3,5]") "}", 5,
     "begins at byte 3"},
    {"{" T("a", "U8", "[2]", "[0,2]") "}", 1, "1 bytes follow"},
    {"{" T("a", "U8", "[2]", "[0,2]") "}", 3, "3 bytes follow"},
};

Test(safetensors, maps_that_the_format_allows)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const map_case_t *c = &cases[i];
        hdf5io_safe_t file = {0};
        err_t err = ERR_INIT;
        err_code_t rc =
            hdf5io_safe_parse(c->map, strlen(c->map), c->bytes, &file, &err);

        cr_expect_eq(rc, c->word == NULL ? ERR_OK : ERR_DATA, "%s: %s", c->map,
                     err.text);
        cr_expect(c->word == NULL || strstr(err.text, c->word), "%s: %s",
                  c->map, err.text);
        hdf5io_safe_close(&file);
    }
}

Test(safetensors, length_of_the_map)
{
    const uint64_t large = UINT64_MAX, most = HDF5IO_SAFE_MAP_MAX, two = 2;
    uint64_t length = 0;

    cr_expect_eq(hdf5io_safe_length(&two, 7, &length, NULL), ERR_DATA);
    cr_expect_eq(hdf5io_safe_length(&two, 9, &length, NULL), ERR_DATA);
    cr_expect_eq(hdf5io_safe_length(&large, INT64_MAX, &length, NULL),
                 ERR_DATA);
    cr_expect_eq(length, 0);
    cr_expect_eq(hdf5io_safe_length(&two, 10, &length, NULL), ERR_OK);
    cr_expect_eq(length, 2);
    cr_expect_eq(hdf5io_safe_length(&most, INT64_MAX, &length, NULL), ERR_OK);
}

static const float matrix[6] = {1, -2, 3.5f, 0, 1e-30f, 6};
static const int64_t number = 7;

static err_code_t fetch(void *context, int index, const void **data, err_t *err)
{
    if (context != NULL && index == 1)
        return err_set(err, ERR_DATA, "no data");
    *data = index == 0 ? (const void *)matrix : &number;
    return ERR_OK;
}

static const hdf5io_safe_tensor_t tensors[] = {
    {.name = "a \"name\"", .type = HDF5IO_SAFE_F32, .ndim = 2, .dims = {2, 3}},
    {.name = "steps", .type = HDF5IO_SAFE_I64}};

static err_code_t two_write(const char *path, file_replace_t replace,
                            void *context, err_t *err)
{
    return hdf5io_safe_write(
        path, replace, &(hdf5io_safe_plan_t){tensors, 2, fetch, context}, err);
}

Test(safetensors, what_is_written_is_read)
{
    char *home = files_make(), *path = files_path(home, "a.safetensors");
    hdf5io_safe_t file;
    err_t err = ERR_INIT;
    float read[6];
    int at;

    cr_assert_eq(two_write(path, FILE_NEW, NULL, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(hdf5io_safe_open(path, &file, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file.count, 2);
    cr_assert_eq(file.begin % 8, 0);
    at = hdf5io_safe_find(&file, "a \"name\"");
    cr_assert_eq(at, 0);
    cr_assert_eq(file.tensors[at].ndim, 2);
    cr_assert_eq(file.tensors[at].dims[1], 3);
    cr_assert_eq(file.tensors[at].elems, 6);
    cr_assert_eq(hdf5io_safe_read(&file, at, read, &err), ERR_OK);
    cr_assert_arr_eq(read, matrix, sizeof matrix);
    cr_assert_eq(hdf5io_safe_find(&file, "none"), -1);
    at = hdf5io_safe_find(&file, "steps");
    cr_assert_eq(hdf5io_safe_read(&file, at, read, &err), ERR_DATA);
    cr_assert(strstr(err.text, "steps") && strstr(err.text, "I64"), "%s",
              err.text);
    files_truncate(path, files_bytes(path) - 9);
    at = hdf5io_safe_find(&file, "a \"name\"");
    cr_assert_eq(hdf5io_safe_read(&file, at, read, &err), ERR_DATA);
    hdf5io_safe_close(&file);
    cr_assert_eq(hdf5io_safe_open(path, &file, &err), ERR_DATA);
    cr_assert(strstr(err.text, path), "%s", err.text);
    files_write_text(path, "abc", 3);
    cr_assert_eq(hdf5io_safe_open(path, &file, &err), ERR_DATA);
    cr_assert_eq(hdf5io_safe_open(home, &file, &err), ERR_DATA);
    cr_assert_eq(hdf5io_safe_open("/nowhere", &file, &err), ERR_IO);
    free(path);
    files_remove(home);
}

/* A file appears whole or not at all, and replaces another one only if that is
 * asked for. */
Test(safetensors, nothing_half_written)
{
    char *home = files_make(), *path = files_path(home, "a.safetensors");
    err_t err = ERR_INIT;
    int64_t bytes;

    cr_assert_eq(two_write(path, FILE_NEW, home, &err), ERR_DATA);
    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "there is a file");
    cr_assert_eq(file_remove_tree(path, &err), ERR_OK);
    cr_assert_eq(two_write(path, FILE_NEW, NULL, &err), ERR_OK);
    bytes = files_bytes(path);
    files_write_text(path, "abc", 3);
    cr_assert_eq(two_write(path, FILE_NEW, NULL, &err), ERR_IO);
    cr_assert_eq(files_bytes(path), 3);
    cr_assert_eq(two_write(path, FILE_REPLACE, home, &err), ERR_DATA);
    cr_assert_eq(files_bytes(path), 3);
    cr_assert_eq(two_write(path, FILE_REPLACE, NULL, &err), ERR_OK);
    cr_assert_eq(files_bytes(path), bytes);
    cr_assert_eq(two_write("/nowhere/a", FILE_NEW, NULL, &err), ERR_IO);
    free(path);
    files_remove(home);
}

Test(safetensors, names_differ_and_are_utf8)
{
    hdf5io_safe_tensor_t pair[] = {{.name = "a"}, {.name = "a"}};
    hdf5io_safe_plan_t plan = {pair, 2, fetch, NULL};
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_safe_write("/nowhere/a", FILE_NEW, &plan, &err),
                 ERR_CONFIG);
    pair[1].name = "\xff";
    cr_assert_eq(hdf5io_safe_write("/nowhere/a", FILE_NEW, &plan, &err),
                 ERR_CONFIG);
}
