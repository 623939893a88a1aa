/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "import/import_fixture.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { IMAGE = 3072 };

static const import_config_t plain = {.words = NULL};

TestSuite(cifar, .init = fixture_make, .fini = fixture_remove);

/* Write [rows] records with [labels] labels each; the first label of record r
 * is first + r, a second one 9 times that. */
static void records_write(const char *name, int labels, int first, int rows)
{
    const size_t record = (size_t)(IMAGE + labels);
    unsigned char *data = malloc((size_t)rows * record);

    cr_assert_not_null(data);
    for (int r = 0; r < rows; r++) {
        unsigned char *at = data + (size_t)r * record;

        at[0] = (unsigned char)(first + r);
        at[labels - 1] =
            (unsigned char)(labels == 1 ? first + r : 9 * (first + r));
        for (int i = 0; i < IMAGE; i++)
            at[labels + i] = (unsigned char)(i * 7 + first + r);
    }
    fixture_write(name, data, (size_t)rows * record);
    free(data);
}

static void convert_ok(const char *kind, const char *const *words)
{
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(fixture_convert(kind, words, &plain, &with, &report, &err),
                 ERR_OK, "%s", err.text);
}

static void expect_labels(const char *set, int first, int step)
{
    double found[8];

    cr_assert_eq(fixture_read("train-00.h5", set, found, 8), 3);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(found[i], step * (first + i), "%s %d: %g", set, i,
                     found[i]);
}

static void expect_images(int first)
{
    double *found = calloc(3 * IMAGE, sizeof *found);

    cr_assert_not_null(found);
    cr_assert_eq(fixture_read("train-00.h5", "/image", found, 3 * IMAGE),
                 3 * IMAGE);
    for (int i = 0; i < 3 * IMAGE; i++)
        cr_assert_eq(found[i], (i % IMAGE * 7 + first + i / IMAGE) % 256);
    free(found);
}

/* Is there an attribute "classes" of the labels? */
static bool named(void)
{
    char *path = fixture_path("train-00.h5");
    hid_t file;
    htri_t is;

    h5_lock();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    is = H5Aexists_by_name(file, "label", "classes", H5P_DEFAULT);
    H5Fclose(file);
    h5_unlock();
    free(path);
    return is > 0;
}

Test(cifar, records_of_both)
{
    records_write("a.bin", 1, 4, 2);
    records_write("b.bin", 1, 6, 1);
    convert_ok("cifar10", WORDS("a.bin", "b.bin"));
    expect_labels("/label", 4, 1);
    expect_images(4);
    cr_expect_not(named());
    records_write("a.bin", 2, 5, 3);
    convert_ok("cifar100", WORDS("a.bin"));
    expect_labels("/coarse_label", 5, 1);
    expect_labels("/label", 5, 9);
    expect_images(5);
}

Test(cifar, names_beside)
{
    records_write("a.bin", 1, 4, 3);
    fixture_write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\r\ni\nj\n\n", 22);
    convert_ok("cifar10", WORDS("a.bin"));
    cr_expect(named());
    fixture_write("batches.meta.txt", "a\nb\n", 4);
    fixture_refused("cifar10", WORDS("a.bin"), &plain, ERR_DATA,
                    "batches.meta.txt", "found 2");
    fixture_write("batches.meta.txt", "a\na\na\na\na\na\na\na\na\na\na\n", 22);
    fixture_refused("cifar10", WORDS("a.bin"), &plain, ERR_DATA,
                    "batches.meta.txt", "more than 10");
}

Test(cifar, mistakes)
{
    records_write("a.bin", 1, 8, 3);
    fixture_refused("cifar10", WORDS("a.bin"), &plain, ERR_DATA, "a.bin",
                    "record 2");
    fixture_refused("cifar100", WORDS("a.bin"), &plain, ERR_DATA, "a.bin",
                    "records of 3074 bytes");
    fixture_refused("cifar10", WORDS("none.bin"), &plain, ERR_IO, "none.bin",
                    "");
    fixture_write("empty.bin", "", 0);
    fixture_refused("cifar10", WORDS("empty.bin"), &plain, ERR_DATA,
                    "empty.bin", "0 bytes");
}
