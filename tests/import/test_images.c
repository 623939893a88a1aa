/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Pictures become the numbers that Pillow makes of them
 * (tests/python/make_picture_reference.py); folders become classes. Without
 * libpng or libjpeg, the sentence that says so is tested. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/h5.h"
#include "import/import_fixture.h"
#include "import/picture.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TestSuite(images, .init = fixture_make, .fini = fixture_remove);

/* A file of tests/data/pictures; the caller frees it. */
static char *data_read(const char *name, size_t *bytes)
{
    const char *source = getenv("srcdir");
    char *path = str_printf("%s/tests/data/pictures/%s",
                            source == NULL ? "." : source, name);
    err_t err = ERR_INIT;
    char *data;

    cr_assert_eq(file_read(path, &data, bytes, &err), ERR_OK, "%s", err.text);
    free(path);
    return data;
}

/* False: this build has no library for it, as the sentence says. */
static bool decode(const char *name, picture_t *out)
{
    err_t err = ERR_INIT;
    size_t bytes;
    char *data = data_read(name, &bytes);
    const err_code_t rc = picture_decode(data, bytes, out, &err);

    free(data);
    if (rc == ERR_UNAVAILABLE)
        cr_expect_not_null(strstr(err.text, "install lib"), "%s", err.text);
    else
        cr_expect_eq(rc, ERR_OK, "%s: %s", name, err.text);
    return rc == ERR_OK;
}

/* ---- pictures ------------------------------------------------------------ */

/* Compare with the picture in a file of Netpbm. */
static void expect_picture(const picture_t *picture, const char *name)
{
    size_t bytes, pixels;
    char *data = data_read(name, &bytes), kind;
    int width, height, most, wrong = 0;

    cr_assert_eq(sscanf(data, "P%c %d %d %d", &kind, &width, &height, &most),
                 4);
    cr_assert_eq(picture->width, width, "%s: %d", name, picture->width);
    cr_assert_eq(picture->height, height, "%s: %d", name, picture->height);
    cr_assert_eq(picture->channels, kind == '5' ? 1 : 3, "%s", name);
    pixels = (size_t)width * (size_t)height * (size_t)picture->channels;
    cr_assert_gt(bytes, pixels);
    for (size_t i = 0; i < pixels; i++)
        wrong += picture->pixels[i] != (unsigned char)data[bytes - pixels + i];
    cr_expect_eq(wrong, 0, "%s: %d of %zu numbers differ", name, wrong, pixels);
    free(data);
}

Test(images, numbers_are_those_of_pillow)
{
    static const struct {
        const char *file, *expected;
        picture_fit_t fit;
    } cases[] = {
        {"grey.png", "grey.pgm", {0}},
        {"grey.png", "grey-3.ppm", {.channels = 3}},
        {"color.png", "color-1.pgm", {.channels = 1}},
        {"alpha.png", "alpha.ppm", {.channels = 3}},
        {"grey-alpha.png", "grey-alpha.pgm", {.channels = 1}},
        {"palette.png", "palette.ppm", {.channels = 3}},
        {"bits.png", "bits.pgm", {.channels = 1}},
        {"color.jpg", "color-jpg.ppm", {0}},
        {"progressive.jpg", "progressive.ppm", {0}},
        {"grey.jpg", "grey-jpg.pgm", {0}},
        {"color.png", "small.ppm", {.resize_height = 7}},
        {"color.png", "large.ppm", {.resize_height = 40, .resize_width = 31}},
        {"color.png",
         "middle.ppm",
         {.resize_height = 10, .crop_height = 7, .crop_width = 7}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        picture_t picture = {0};
        err_t err = ERR_INIT;

        if (!decode(cases[i].file, &picture))
            continue;
        cr_assert_eq(picture_apply(&cases[i].fit, &picture, &err), ERR_OK, "%s",
                     err.text);
        expect_picture(&picture, cases[i].expected);
        picture_free(&picture);
    }
}

/* Wherever a file is cut, it is an error; a flipped bit is one, or not, but
 * never anything worse. */
Test(images, damaged_files)
{
    static const char *const files[] = {"color.png", "palette.png", "color.jpg",
                                        "progressive.jpg"};

    for (size_t f = 0; f < 4; f++) {
        picture_t picture = {0};
        size_t bytes;
        char *data = data_read(files[f], &bytes);

        if (!decode(files[f], &picture)) {
            free(data);
            continue;
        }
        picture_free(&picture);
        for (size_t cut = 0; cut + 2 < bytes; cut += cut < 40 ? 1 : 13) {
            err_t err = ERR_INIT;

            cr_expect_eq(picture_decode(data, cut, &picture, &err), ERR_DATA,
                         "%s, cut at %zu", files[f], cut);
            picture_free(&picture);
        }
        for (size_t bit = 0; bit < 8 * bytes; bit += 11) {
            char *at = &data[bit / 8];
            err_t err = ERR_INIT;

            *at = (char)(*at ^ 1 << bit % 8);
            picture_decode(data, bytes, &picture, &err);
            picture_free(&picture);
            *at = (char)(*at ^ 1 << bit % 8);
        }
        free(data);
    }
}

Test(images, what_is_no_picture)
{
    picture_t picture = {.width = 1 << 15, .height = 1 << 14, .channels = 1};
    err_t err = ERR_INIT;
    size_t bytes;
    char *data = data_read("cmyk.jpg", &bytes);
    err_code_t rc;

    cr_expect_eq(picture_alloc(&picture, &err), ERR_DATA);
    cr_expect_eq(picture_decode("GIF89a", 6, &picture, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, "neither a PNG nor"), "%s", err.text);
    rc = picture_decode(data, bytes, &picture, &err);
    if (rc != ERR_UNAVAILABLE) {
        cr_expect_eq(rc, ERR_DATA);
        cr_expect_not_null(strstr(err.text, "convert it to RGB"), "%s",
                           err.text);
    }
    free(data);
}

/* ---- folders ------------------------------------------------------------- */

/* Put the file [data] of tests/data/pictures at DIR/[place]. */
static void put(const char *place, const char *data)
{
    char *path = fixture_path(place), *slash = strrchr(path, '/');
    size_t bytes;
    char *content = data_read(data, &bytes);
    err_t err = ERR_INIT;

    *slash = '\0';
    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "%s", err.text);
    fixture_write(place, content, bytes);
    free(content);
    free(path);
}

/* Is the library for PNG there? */
static bool have_png(void)
{
    picture_t picture = {0};
    const bool have = decode("grey.png", &picture);

    picture_free(&picture);
    return have;
}

static uint64_t shard_hash(void)
{
    char *path = fixture_path("train-00.h5");
    err_t err = ERR_INIT;
    uint64_t hash, bytes;

    cr_assert_eq(hash_file(path, &hash, &bytes, &err), ERR_OK, "%s", err.text);
    free(path);
    return hash;
}

static void convert_ok(const import_config_t *config)
{
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(
        fixture_convert("images", WORDS("root"), config, &with, &report, &err),
        ERR_OK, "%s", err.text);
}

static void tree_put(void)
{
    put("root/zebra/b.PNG", "color.png");
    put("root/zebra/a.png", "color.png");
    put("root/Yak/deep/1.png", "color.png");
    put("root/Yak/9.png", "color.png");
    put("root/Yak/.hidden.png", "cmyk.jpg");
    put("root/Yak/notes.txt", "color.png");
    put("root/ant/1.png", "grey.png");
    put("root/readme", "color.png");
}

static void expect_classes(void)
{
    char *path = fixture_path("train-00.h5"), found[3][5];
    hid_t file, attribute, type;

    h5_lock();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    attribute =
        H5Aopen_by_name(file, "label", "classes", H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute >= 0);
    type = H5Aget_type(attribute);
    cr_assert_eq(H5Tget_size(type), 5);
    cr_assert(H5Aread(attribute, type, found) >= 0);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
    h5_unlock();
    cr_expect_eq(memcmp(found, "Yak\0\0ant\0\0zebra", sizeof found), 0);
    free(path);
}

Test(images, folders_are_classes_in_the_order_of_bytes)
{
    static const double labels[] = {0, 0, 1, 2, 2};
    const import_config_t config = {.resize = "6", .crop = "5,4", .threads = 3};
    const import_config_t alone = {.resize = "6", .crop = "5,4", .threads = 1};
    double found[5 * 3 * 5 * 4];
    uint64_t hash;

    if (!have_png())
        cr_skip_test("this build has no libpng");
    tree_put();
    convert_ok(&config);
    cr_assert_eq(fixture_read("train-00.h5", "/label", found, 5), 5);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(found[i], labels[i], "%d: %g", i, found[i]);
    cr_expect_eq(fixture_read("train-00.h5", "/image", found, 300), 300);
    expect_classes();
    hash = shard_hash();
    convert_ok(&alone);
    cr_expect_eq(shard_hash(), hash);
}

Test(images, mistakes_name_the_file)
{
    static const import_config_t plain = {.threads = 2};

    if (!have_png())
        cr_skip_test("this build has no libpng");
    tree_put();
    fixture_refused("images", WORDS("root"), &plain, ERR_DATA,
                    "ant/1.png: it is 6 pixels high", "--resize");
    fixture_refused("images", WORDS("root"),
                    &(import_config_t){.crop = "7,5", .threads = 2}, ERR_DATA,
                    "ant/1.png", "less than --crop 7,5");
    /* Of several bad files the first one is named. */
    put("root/ant/1.png", "color.png");
    for (int i = 0; i < 9; i++) {
        char place[32];

        snprintf(place, sizeof place, "root/zebra/bad%d.png", i);
        put(place, i < 5 ? "grey.pgm" : "small.ppm");
    }
    fixture_refused("images", WORDS("root"), &plain, ERR_DATA,
                    "zebra/bad0.png: this is neither", "");
    put("root/Yak/9.png", "middle.ppm");
    fixture_refused("images", WORDS("root"), &plain, ERR_DATA,
                    "Yak/9.png: this is neither", "");
}

Test(images, words_that_do_not_fit)
{
    static const import_config_t plain = {.threads = 1};
    static const char *const edges[] = {"", "0", "x", "5,", "5,6,7", "70000"};

    fixture_refused("images", WORDS("a", "b"), &plain, ERR_USAGE, "one folder",
                    "found 2");
    fixture_refused("images", WORDS("none"), &plain, ERR_IO, "none", "list");
    fixture_write("file", "x", 1);
    fixture_refused("images", WORDS("file"), &plain, ERR_DATA, "/file", "list");
    put("empty/sub/readme", "grey.png");
    fixture_refused("images", WORDS("empty"), &plain, ERR_DATA, "empty/sub",
                    "no file");
    put("flat/a.png", "grey.png");
    fixture_refused("images", WORDS("flat"), &plain, ERR_DATA, "flat",
                    "no folder");
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        fixture_refused("images", WORDS("flat"),
                        &(import_config_t){.resize = edges[i]}, ERR_USAGE,
                        "--resize", edges[i]);
    fixture_refused("images", WORDS("flat"), &(import_config_t){.channels = 2},
                    ERR_USAGE, "--channels", "2");
}
