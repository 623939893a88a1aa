/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files of numpy.savez (tests/python/make_npz.py). Without libzip, the sentence
 * that says so is tested. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "import/import_fixture.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const import_config_t plain = {.words = NULL};

/* Copy the files of tests/data/npz to DIR. */
static void files_put(void)
{
    static const char *const names[] = {"plain.npz", "packed.npz", "parts.npz",
                                        "texts.npz"};
    const char *source = getenv("srcdir");

    fixture_make();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = str_printf("%s/tests/data/npz/%s",
                                source == NULL ? "." : source, names[i]);
        err_t err = ERR_INIT;
        size_t bytes;
        char *data;

        cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK, "%s",
                     err.text);
        fixture_write(names[i], data, bytes);
        free(data);
        free(path);
    }
}

TestSuite(npz, .init = files_put, .fini = fixture_remove);

/* False: this build has no libzip, as the sentence says. */
static bool convert_ok(const char *const *words)
{
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report;
    err_t err = ERR_INIT;
    const err_code_t rc =
        fixture_convert("npz", words, &plain, &with, &report, &err);

    if (rc == ERR_UNAVAILABLE)
        cr_expect_not_null(strstr(err.text, "install libzip-dev"), "%s",
                           err.text);
    else
        cr_expect_eq(rc, ERR_OK, "%s", err.text);
    return rc == ERR_OK;
}

/* The numbers of [set] are from -60 on, [rows] samples of them, [files] times.
 */
static void expect_x(const char *set, int rows, int files)
{
    double found[240];
    const int count = 6 * rows;

    cr_assert_eq(fixture_read("train-00.h5", set, found, 240), files * count);
    for (int i = 0; i < files * count; i++)
        cr_expect_eq(found[i], i % count - 60, "number %d is %g", i, found[i]);
}

Test(npz, all_arrays_of_files)
{
    double found[40];

    if (!convert_ok(WORDS("plain.npz", "packed.npz")))
        cr_skip_test("this build has no libzip");
    expect_x("/x", 20, 2);
    cr_assert_eq(fixture_read("train-00.h5", "/label", found, 40), 40);
    for (int i = 0; i < 40; i++)
        cr_expect_eq(found[i], i % 20 % 7, "label %d is %g", i, found[i]);
}

Test(npz, arrays_by_name)
{
    if (!convert_ok(WORDS("image=parts.npz:x_train", "again=plain.npz:x",
                          "image=parts.npz:x_test")))
        cr_skip_test("this build has no libzip");
    expect_x("/image", 20, 1);
    expect_x("/again", 20, 1);
}

Test(npz, mistakes)
{
    char *path = fixture_path("plain.npz"), *data;
    err_t err = ERR_INIT;
    size_t bytes;

    if (!convert_ok(WORDS("plain.npz")))
        cr_skip_test("this build has no libzip");
    fixture_refused("npz", WORDS("x=plain.npz"), &plain, ERR_USAGE,
                    "NAME=FILE:ARRAY", "plain.npz");
    fixture_refused("npz", WORDS("x=plain.npz:y"), &plain, ERR_DATA,
                    "plain.npz:y", "no array with this name");
    fixture_refused("npz", WORDS("none.npz"), &plain, ERR_IO, "none.npz", "");
    fixture_refused("npz", WORDS("parts.npz"), &plain, ERR_DATA, "15 samples",
                    "parts.npz:x_test");
    fixture_refused("npz", WORDS("texts.npz"), &plain, ERR_DATA,
                    "texts.npz:names", "<U1");
    fixture_write("no.npz", "PK\3\4 nothing", 12);
    fixture_refused("npz", WORDS("no.npz"), &plain, ERR_DATA, "no.npz",
                    "no .npz file");
    fixture_write("no.npz", "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    fixture_refused("npz", WORDS("no.npz"), &plain, ERR_DATA, "no.npz",
                    "no array");
    /* A number of the array changes: the checksum does not fit. */
    cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK);
    data[250] ^= 1;
    fixture_write("bad.npz", data, bytes);
    fixture_refused("npz", WORDS("x=bad.npz:x"), &plain, ERR_DATA, "bad.npz:x",
                    "damaged");
    fixture_write("bad.npz", data, bytes / 2);
    fixture_refused("npz", WORDS("bad.npz"), &plain, ERR_DATA, "bad.npz",
                    "damaged one");
    free(data);
    free(path);
}
