/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Arrays of numbers: .npy, IDX and raw files. Each number arrives, in its type,
 * whatever the shards and the compression; files that are not what they say are
 * refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "import/import_fixture.h"
#include "lib/entries.h"

enum { ROWS = 23, EACH = 6, ALL = ROWS * EACH };

#define HEADER "{'descr': '<i2', 'fortran_order': False, 'shape': (23, 2, 3), }"
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const import_config_t plain = {.words = NULL};

/* global: the file system has no call that renames without replacing a file;
 * and it has no hard links */
static bool plain_rename, no_links;

/* These two functions replace those of the C library. */
int renameat2(int from_at, const char *from, int to_at, const char *to,
              unsigned flags)
{
    if (plain_rename && flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
    if (no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

TestSuite(columns, .init = fixture_make, .fini = fixture_remove);

/* Numbers of two bytes, little-endian or big-endian: -69, -68, ... */
static void numbers_fill(unsigned char out[2 * ALL], bool big)
{
    for (int i = 0; i < ALL; i++) {
        const unsigned number = (unsigned)(i - ALL / 2) & 0xffff;

        out[2 * i + (big ? 0 : 1)] = (unsigned char)(number >> 8);
        out[2 * i + (big ? 1 : 0)] = (unsigned char)(number & 255);
    }
}

static void import_ok(const char *kind, const char *const *words,
                      const import_config_t *config,
                      const import_sink_config_t *with, int shards)
{
    import_sink_report_t report = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(fixture_convert(kind, words, config, with, &report, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(report.shards, shards);
    cr_assert_gt(report.bytes, 0);
}

/* The numbers of all shards together are those of numbers_fill. */
static void expect_numbers(int shards)
{
    double found[ALL];
    int count = 0;

    for (int i = 0; i < shards; i++) {
        char name[32];

        snprintf(name, sizeof name, "train-%02d.h5", i);
        count += fixture_read(name, "/x", found + count, ALL - count);
    }
    cr_assert_eq(count, ALL);
    for (int i = 0; i < ALL; i++)
        cr_assert_eq(found[i], i - ALL / 2, "number %d is %g", i, found[i]);
}

/* The header of an IDX file of int16 [23, 2, 3], and its numbers. */
static size_t idx_fill(unsigned char out[16 + 2 * ALL])
{
    static const unsigned char head[16] = {0, 0, 0x0b, 3, 0, 0, 0, ROWS,
                                           0, 0, 0,    2, 0, 0, 0, 3};

    memcpy(out, head, sizeof head);
    numbers_fill(out + sizeof head, true);
    return sizeof head + 2 * ALL;
}

/* ---- what is read -------------------------------------------------------- */

Test(columns, layouts_do_not_change_a_number)
{
    static const struct {
        import_sink_config_t with;
        int shards;
    } cases[] = {{{.shards = 1}, 1},
                 {{.shards = 0}, 1},
                 {{.shards = 5}, 5},
                 {{.shards = 23}, 23},
                 {{.shards = 2, .gzip = 4}, 2},
                 {{.shards = 1, .chunk = 48}, 1},
                 {{.shards = 3, .gzip = 9, .chunk = 48}, 3}};
    unsigned char numbers[2 * ALL];

    numbers_fill(numbers, false);
    fixture_npy("x.npy", HEADER, numbers, sizeof numbers);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        import_ok("npy", WORDS("x=x.npy"), &plain, &cases[i].with,
                  cases[i].shards);
        expect_numbers(cases[i].shards);
    }
}

Test(columns, formats_give_the_same_file)
{
    static const import_sink_config_t with = {.shards = 1};
    unsigned char numbers[2 * ALL], idx[16 + 2 * ALL];
    char *path = fixture_path("train-00.h5");
    const struct {
        const char *kind, *word;
        import_config_t config;
    } cases[] = {
        {"npy", "x=x.npy", plain},
        {"npy", "x=big.npy", plain},
        {"idx", "x=x.idx", plain},
        {"idx", "x=x.idx.gz", plain},
        {"raw",
         "x=x.npy",
         {.type = "int16", .shape = "2,3", .skip = 10 + sizeof HEADER - 1}},
        {"raw", "x=x.idx", {.type = "big:int16", .shape = "2,3", .skip = 16}},
    };
    uint64_t first = 0;

    numbers_fill(numbers, false);
    fixture_npy("x.npy", HEADER, numbers, sizeof numbers);
    numbers_fill(numbers, true);
    fixture_npy("big.npy",
                "{\"shape\":(23,2,3),\"fortran_order\":False,\"descr\":\">i2\"}"
                "\n",
                numbers, sizeof numbers);
    fixture_write("x.idx", idx, idx_fill(idx));
    fixture_gzip("x.idx.gz", idx, sizeof idx);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t hash, bytes;
        err_t err = ERR_INIT;

        import_ok(cases[i].kind, WORDS(cases[i].word), &cases[i].config, &with,
                  1);
        expect_numbers(1);
        cr_assert_eq(hash_file(path, &hash, &bytes, &err), ERR_OK);
        first = i == 0 ? hash : first;
        cr_expect_eq(hash, first, "%s %s", cases[i].kind, cases[i].word);
    }
    free(path);
}

/* Columns side by side, one of them from several files, also an empty one. */
Test(columns, files_follow_each_other)
{
    static const import_sink_config_t with = {.shards = 4};
    unsigned char numbers[2 * ALL], labels[ROWS];
    double found[ROWS];
    int count = 0;

    numbers_fill(numbers, false);
    for (int i = 0; i < ROWS; i++)
        labels[i] = (unsigned char)(200 + i);
    fixture_npy("a.npy",
                "{'descr': '<i2', 'fortran_order': False, 'shape': (0, 2, 3)}",
                numbers, 0);
    fixture_npy("b.npy", HEADER, numbers, sizeof numbers);
    fixture_npy("l1.npy",
                "{'descr': '|u1', 'fortran_order': True, 'shape': (20,)}",
                labels, 20);
    fixture_npy("l2.npy",
                "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }",
                labels + 20, 3);
    import_ok("npy", WORDS("x=a.npy", "l=l1.npy", "x=b.npy", "l=l2.npy"),
              &plain, &with, 4);
    expect_numbers(4);
    for (int i = 0; i < 4; i++) {
        char name[32];

        snprintf(name, sizeof name, "train-%02d.h5", i);
        count += fixture_read(name, "/l", found + count, ROWS - count);
    }
    cr_assert_eq(count, ROWS);
    for (int i = 0; i < ROWS; i++)
        cr_expect_eq(found[i], 200 + i);
}

Test(columns, half_precision_is_stored_as_such)
{
    static const import_sink_config_t with = {.shards = 1};
    /* 1.5, -2, the smallest subnormal, 65504 */
    static const unsigned char halves[] = {0x00, 0x3e, 0x00, 0xc0,
                                           0x01, 0x00, 0xff, 0x7b};
    double found[4];

    fixture_npy("h.npy",
                "{'descr': '<f2', 'fortran_order': False, 'shape': (4,)}",
                halves, sizeof halves);
    import_ok("npy", WORDS("x=h.npy"), &plain, &with, 1);
    cr_assert_eq(fixture_read("train-00.h5", "/x", found, 4), 4);
    cr_expect_eq(found[0], 1.5);
    cr_expect_eq(found[1], -2);
    cr_expect_eq(found[2], 0x1p-24);
    cr_expect_eq(found[3], 65504);
}

/* Shards get their names on every kind of file system. */
Test(columns, shards_are_renamed_whatever_the_file_system_can)
{
    static const import_sink_config_t with = {.shards = 5};
    unsigned char numbers[2 * ALL];

    numbers_fill(numbers, false);
    fixture_npy("x.npy", HEADER, numbers, sizeof numbers);
    plain_rename = true;
    for (int i = 0; i < 2; i++) {
        no_links = i == 1;
        import_ok("npy", WORDS("x=x.npy"), &plain, &with, 5);
        expect_numbers(5);
    }
}

/* ---- what is refused ----------------------------------------------------- */

Test(columns, headers_of_npy_that_lie)
{
    static const struct {
        const char *header, *part;
    } cases[] = {
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "<c8"},
        {"{'descr': [('a', '<i4')], 'shape': (2,)}", "quotes"},
        {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2)}", "Fortran"},
        {"{'descr': '<i2', 'fortran_order': 0, 'shape': (2, 2)}", "True"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': ()}", "single"},
        {"{'descr': '<i2', 'fortran_order': False}", "shape"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, -2)}", "size"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2}", ", or )"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 0)}", "size 0"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2)}",
         "3 samples of 4 bytes"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2)}",
         "1 samples of 4 bytes"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': "
         "(9223372036854775806, 4294967296)}",
         "samples"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': "
         "(1,1,1,1,1,1,1,1,1,1)}",
         "dimensions"},
        {"{'descr': '<i2', 'order': False, 'shape': (2, 2)}", "descr"},
        {"{'descr: '<i2', }", ":"},
        {"", "{"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_npy("bad.npy", cases[i].header, "12345678", 8);
        fixture_refused("npy", WORDS("x=bad.npy"), &plain, ERR_DATA, "bad.npy",
                        cases[i].part);
    }
    fixture_write("bad.npy", "not NumPy at all", 16);
    fixture_refused("npy", WORDS("x=bad.npy"), &plain, ERR_DATA, "bad.npy",
                    "NUMPY");
    fixture_write("bad.npy", "\x93NUMPY\1\0\x76", 9);
    fixture_refused("npy", WORDS("x=bad.npy"), &plain, ERR_DATA, "bad.npy",
                    "ends at byte 9");
}

/* If several processes each write a part of the shards, the shards are the same
 * as those of one process. */
Test(columns, parts_give_the_same_files)
{
    enum { SHARDS = 5 };
    static const char *const words[] = {"x=x.npy", "x=x.npy.gz", "x=x.idx.gz"};
    unsigned char numbers[2 * ALL], idx[16 + 2 * ALL];
    char *all = NULL, *path;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    numbers_fill(numbers, false);
    fixture_npy("x.npy", HEADER, numbers, sizeof numbers);
    path = fixture_path("x.npy");
    cr_assert_eq(file_read(path, &all, &bytes, &err), ERR_OK);
    fixture_gzip("x.npy.gz", all, bytes);
    fixture_gzip("x.idx.gz", idx, idx_fill(idx));
    for (int k = 0; k < 3; k++)
        for (int parts = 1; parts <= 7; parts++) {
            for (int part = 0; part < parts; part++) {
                const import_sink_config_t with = {
                    .shards = SHARDS, .part = part, .parts = parts};
                import_sink_report_t report = {0};

                cr_assert_eq(fixture_convert(k < 2 ? "npy" : "idx",
                                             WORDS(words[k]), &plain, &with,
                                             &report, &err),
                             ERR_OK, "%s", err.text);
                cr_expect_leq(report.shards, SHARDS / parts + 1);
            }
            expect_numbers(SHARDS);
        }
    free(all);
    free(path);
}

/* A sink for [rows] samples of one byte, directory/part-00.h5 and so on, to
 * which 7 samples were written. */
static import_sink_t *sink_with_seven(const char *directory, int64_t rows,
                                      int shards)
{
    const import_field_t field = {.name = "x", .type = IMPORT_UINT8};
    const import_sink_config_t config = {.directory = directory,
                                         .name = "part",
                                         .fields = &field,
                                         .field_count = 1,
                                         .rows = rows,
                                         .shards = shards};
    char bytes[] = "samples";
    void *data[] = {bytes};
    import_sink_t *sink = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(import_sink_open(&config, &sink, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(import_sink_write(sink, 7, data, &err), ERR_OK, "%s",
                 err.text);
    return sink;
}

/* Two commands that write the same shards: the later one fails, and changes
 * nothing. */
static void check_not_replaced(void)
{
    char *directory = fixture_path(""), *text = NULL;
    import_sink_t *sink = sink_with_seven(directory, 7, 3);
    import_sink_report_t report;
    err_t err = ERR_INIT;
    char *first = fixture_path("part-00.h5"),
         *second = fixture_path("part-01.h5");

    fixture_write("part-01.h5", "theirs", 6);
    cr_expect_eq(import_sink_finish(sink, &report, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "part-01.h5"), "%s", err.text);
    import_sink_close(sink);
    cr_expect_neq(access(first, F_OK), 0);
    cr_assert_eq(file_read(second, &text, NULL, &err), ERR_OK);
    cr_expect_str_eq(text, "theirs");
    free(text);
    free(first);
    free(second);
    free(directory);
}

Test(columns, a_shard_of_somebody_else_is_not_replaced)
{
    check_not_replaced();
    plain_rename = true;
    check_not_replaced();
    no_links = true;
    check_not_replaced();
}

/* A sink that did not get all samples has named no shard, and removes what it
 * has written. */
Test(columns, a_part_is_not_left_behind)
{
    char *directory = fixture_path("");
    import_sink_t *sink = sink_with_seven(directory, 10, 5);
    char *first = fixture_path("part-00.h5"),
         *third = fixture_path("part-02.h5");

    cr_expect_neq(access(first, F_OK), 0);
    cr_expect_eq(entries_count(directory), 4);
    import_sink_close(sink);
    cr_expect_eq(entries_count(directory), 0);
    cr_expect_neq(access(first, F_OK), 0);
    cr_expect_neq(access(third, F_OK), 0);
    free(first);
    free(third);
    free(directory);
}

Test(columns, idx_files_that_lie)
{
    unsigned char idx[16 + 2 * ALL];
    const size_t bytes = idx_fill(idx);

    fixture_gzip("long.gz", idx, bytes);
    fixture_write("cut", idx, bytes - 1);
    fixture_refused("idx", WORDS("x=cut"), &plain, ERR_DATA, "/cut",
                    "291 bytes");
    fixture_write("cut", idx, 10);
    fixture_refused("idx", WORDS("x=cut"), &plain, ERR_DATA, "/cut",
                    "ends at byte 10");
    idx[7] = ROWS - 1;
    fixture_gzip("more.gz", idx, bytes);
    fixture_refused("idx", WORDS("x=more.gz"), &plain, ERR_DATA, "/more.gz",
                    "after byte 280");
    idx[7] = ROWS + 1;
    fixture_gzip("less.gz", idx, bytes);
    fixture_refused("idx", WORDS("x=less.gz"), &plain, ERR_DATA, "/less.gz",
                    "12 bytes are missing");
    idx[2] = 7;
    fixture_write("type", idx, bytes);
    fixture_refused("idx", WORDS("x=type"), &plain, ERR_DATA, "/type", "07");
    idx[2] = 8;
    idx[3] = 0;
    fixture_write("type", idx, bytes);
    fixture_refused("idx", WORDS("x=type"), &plain, ERR_DATA, "/type",
                    "dimensions, found 0");
}

/* A bit that flipped in a gzip file, and one that is cut. */
Test(columns, damaged_gzip_files)
{
    char *path = fixture_path("x.gz"), *data;
    unsigned char idx[16 + 2 * ALL];
    err_t err = ERR_INIT;
    size_t bytes;

    idx_fill(idx);
    fixture_gzip("x.gz", idx, sizeof idx);
    cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK);
    data[bytes - 8] ^= 1; /* its checksum */
    fixture_write("bad.gz", data, bytes);
    fixture_refused("idx", WORDS("x=bad.gz"), &plain, ERR_DATA, "/bad.gz",
                    "damaged");
    fixture_write("cut.gz", data, bytes / 2);
    fixture_refused("idx", WORDS("x=cut.gz"), &plain, ERR_DATA, "/cut.gz",
                    "cut at its end");
    free(data);
    free(path);
}

Test(columns, words_that_do_not_fit)
{
    unsigned char numbers[2 * ALL];

    numbers_fill(numbers, false);
    fixture_npy("x.npy", HEADER, numbers, sizeof numbers);
    fixture_npy("l.npy",
                "{'descr': '|u1', 'fortran_order': False, 'shape': (20,), }",
                numbers, 20);
    fixture_npy("none.npy",
                "{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }",
                numbers, 0);
    fixture_refused("npy", WORDS("x.npy"), &plain, ERR_USAGE, "NAME=FILE", "");
    fixture_refused("npy", WORDS("a/b=x.npy"), &plain, ERR_USAGE, "a/b", "");
    fixture_refused("npy", WORDS("x=gone.npy"), &plain, ERR_IO, "gone.npy", "");
    fixture_refused("npy", WORDS("x=none.npy"), &plain, ERR_DATA, "none.npy",
                    "no samples");
    fixture_refused("npy", WORDS("x=x.npy", "l=l.npy"), &plain, ERR_DATA,
                    "has 23 samples (", "has 20 (");
    fixture_refused("npy", WORDS("x=x.npy", "x=l.npy"), &plain, ERR_DATA,
                    "l.npy", "another type or shape");
    fixture_refused("raw", WORDS("x=x.npy"), &plain, ERR_USAGE, "--type", "");
    fixture_refused("raw", WORDS("x=x.npy"),
                    &(import_config_t){.type = "int15", .shape = "2"},
                    ERR_USAGE, "int15", "");
    fixture_refused("raw", WORDS("x=x.npy"),
                    &(import_config_t){.type = "int16", .shape = "2,"},
                    ERR_USAGE, "\"2,\"", "");
    fixture_refused("raw", WORDS("x=x.npy"),
                    &(import_config_t){.type = "int16", .shape = "2,500"},
                    ERR_DATA, "x.npy", "2000 bytes");
}
