/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Texts become streams: which texts, in which order, and how they are cut. */
#include "cmd/make_bytes.h"

#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

#define TEXTS 40
#define MOST 4096

static char scratch[64];

static void text_write(const char *name, const char *text, size_t bytes)
{
    char *path = str_printf("%s/%s", scratch, name);
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(path, text, bytes, &err), ERR_OK, "%s", err.text);
    free(path);
}

/* Write text [i], of 20 to 59 bytes, to [out]; returns its length. */
static int text_of(int i, char out[80])
{
    return snprintf(out, 80, "text %d: %.*s\n", i, 10 + i,
                    "the quick brown fox jumps over the lazy dog, twice");
}

static void scratch_make(void)
{
    char *folder;
    err_t err = ERR_INIT;

    snprintf(scratch, sizeof scratch, "/tmp/cddp-test-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
    folder = str_printf("%s/in/deep", scratch);
    cr_assert_eq(file_make_dirs(folder, &err), ERR_OK);
    free(folder);
    for (int i = 0; i < TEXTS; i++) {
        char text[80], name[32];
        int length = text_of(i, text);

        snprintf(name, sizeof name, i % 2 == 0 ? "in/%d" : "in/deep/%d", i);
        text_write(name, text, (size_t)length);
    }
}

static void scratch_remove(void)
{
    err_t err = ERR_INIT;

    cr_expect_eq(file_remove_tree(scratch, &err), ERR_OK, "%s", err.text);
}

TestSuite(bytes, .init = scratch_make, .fini = scratch_remove);

static err_code_t make(const char *out, const char *in, int shards,
                       int64_t most, cmd_bytes_report_t *report, err_t *err)
{
    char *directory = str_printf("%s/%s", scratch, out);
    char *path = str_printf("%s/%s", scratch, in);
    const char *const paths[] = {path};
    cmd_bytes_config_t config = {.directory = directory,
                                 .paths = paths,
                                 .path_count = 1,
                                 .shards = shards,
                                 .valid_percent = 30,
                                 .bytes_most = most};
    err_code_t rc = cmd_make_bytes(&config, report, err);

    free(path);
    free(directory);
    return rc;
}

static cmd_bytes_report_t make_ok(const char *out, int shards, int64_t most)
{
    cmd_bytes_report_t report;
    err_t err = ERR_INIT;

    cr_assert_eq(make(out, "in", shards, most, &report, &err), ERR_OK, "%s",
                 err.text);
    return report;
}

/* Append the /tokens of the file [name] in the scratch folder to [tokens],
 * which has [count] tokens. Returns the new count. */
static int tokens_read(const char *name, unsigned char *tokens, int count)
{
    char *path = str_printf("%s/%s", scratch, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set, type, space;
    hsize_t rows;

    cr_assert(file >= 0, "%s", path);
    set = H5Dopen2(file, "/tokens", H5P_DEFAULT);
    type = H5Dget_type(set);
    space = H5Dget_space(set);
    cr_assert(H5Tequal(type, H5T_STD_U8LE) > 0);
    cr_assert_eq(H5Sget_simple_extent_dims(space, &rows, NULL), 1);
    cr_assert_leq(count + (int)rows, MOST);
    cr_assert(H5Dread(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      tokens + count) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
    free(path);
    return count + (int)rows;
}

/* Is text [i], with the 0 that ends it, somewhere in the stream? */
static bool has_text(const unsigned char *tokens, int count, int i)
{
    char text[80];
    int length = text_of(i, text);

    return memmem(tokens, (size_t)count, text, (size_t)length + 1) != NULL;
}

Test(bytes, every_text_is_in_one_split)
{
    cmd_bytes_report_t report = make_ok("out", 1, MOST);
    unsigned char train[MOST], valid[MOST];
    int trained = tokens_read("out/train-00.h5", train, 0);
    int kept = tokens_read("out/valid-00.h5", valid, 0);
    int both[2] = {0};

    cr_expect_eq(report.documents, TEXTS);
    cr_expect_eq(report.train, trained);
    cr_expect_eq(report.valid, kept);
    cr_expect_eq(report.skipped + report.repeated, 0);
    for (int i = 0; i < TEXTS; i++) {
        bool in_train = has_text(train, trained, i);

        cr_expect_neq(in_train, has_text(valid, kept, i), "text %d", i);
        both[in_train ? 0 : 1]++;
    }
    cr_expect(both[0] > both[1] && both[1] > 2, "%d %d", both[0], both[1]);
}

Test(bytes, shards_are_parts_of_the_same_stream)
{
    unsigned char whole[MOST], parts[MOST];
    char name[32];
    int count, got = 0;

    make_ok("one", 1, MOST);
    make_ok("many", 5, MOST);
    count = tokens_read("one/train-00.h5", whole, 0);
    for (int shard = 0; shard < 5; shard++) {
        snprintf(name, sizeof name, "many/train-%02d.h5", shard);
        got = tokens_read(name, parts, got);
    }
    cr_assert_eq(got, count);
    cr_expect_arr_eq(parts, whole, (size_t)count);
}

static uint64_t hash_of(const char *name)
{
    char *path = str_printf("%s/%s", scratch, name);
    uint64_t hash, bytes;
    err_t err = ERR_INIT;

    cr_assert_eq(hash_file(path, &hash, &bytes, &err), ERR_OK, "%s", err.text);
    free(path);
    return hash;
}

/* The files do not depend on the names of the texts, on repeated texts, or on
 * files that are not text. */
Test(bytes, only_the_texts_count)
{
    cmd_bytes_report_t report;
    char text[80];
    int length = text_of(7, text);
    char *from = str_printf("%s/in/4", scratch);
    char *to = str_printf("%s/in/deep/renamed", scratch);
    char *link = str_printf("%s/in/link", scratch);

    make_ok("first", 1, MOST);
    cr_assert_eq(rename(from, to), 0);
    text_write("in/again", text, (size_t)length);
    text_write("in/empty", text, 0);
    text_write("in/packed.gz", "\037\213\010 zipped", 10);
    cr_assert_eq(symlink("/etc/hostname", link), 0);
    report = make_ok("second", 1, MOST);
    cr_expect_eq(report.repeated, 1);
    cr_expect_eq(report.skipped, 2, "the empty and the packed one");
    cr_expect_eq(report.documents, TEXTS);
    cr_expect_eq(hash_of("first/train-00.h5"), hash_of("second/train-00.h5"));
    cr_expect_eq(hash_of("first/valid-00.h5"), hash_of("second/valid-00.h5"));
    free(from);
    free(to);
    free(link);
}

Test(bytes, a_limit_takes_whole_texts)
{
    cmd_bytes_report_t report = make_ok("out", 1, 700);

    cr_expect_gt(report.documents, 8);
    cr_expect_lt(report.documents, TEXTS);
    cr_expect_leq(report.train + report.valid, 700);
    cr_expect_gt(report.train + report.valid, 640);
}

Test(bytes, what_cannot_be_is_told)
{
    cmd_bytes_report_t report;
    err_t err = ERR_INIT;

    cr_expect_eq(make("out", "none", 1, MOST, &report, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "none"), "%s", err.text);
    cr_expect_eq(make("out", "in/2", 1, MOST, &report, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, "found 1 documents: too few"), "%s",
                       err.text);
    make_ok("out", 1, MOST);
    cr_expect_eq(make("out", "in", 1, MOST, &report, &err), ERR_USAGE);
    cr_expect_not_null(strstr(err.text, "--force"), "%s", err.text);
}
