/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tables: which columns become what, and mistakes with their lines. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/import_fixture.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TestSuite(csv, .init = fixture_make, .fini = fixture_remove);

static void text_write(const char *name, const char *text)
{
    fixture_write(name, text, strlen(text));
}

static void convert_ok(const char *const *words, const char *input,
                       const char *target)
{
    const import_config_t config = {.input = input, .target = target};
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(fixture_convert("csv", words, &config, &with, &report, &err),
                 ERR_OK, "%s", err.text);
}

static void expect_set(const char *set, const double *numbers, int count)
{
    double found[64];

    cr_assert_eq(fixture_read("train-00.h5", set, found, 64), count);
    for (int i = 0; i < count; i++)
        cr_expect_eq(found[i], numbers[i], "%s: number %d is %g", set, i,
                     found[i]);
}

Test(csv, columns_by_name)
{
    static const double input[] = {3, 1, 6, 4, -1.5, 200};
    static const double target[] = {2, 16777217, 7};

    text_write("a.csv", "x,t,\"y\"\n1,2,3\n4,16777217,6\n");
    text_write("b.csv", "extra,y,t,x\r\nsome text,-1.5,7,2e2\r\n");
    convert_ok(WORDS("a.csv", "b.csv"), "y,x", "t");
    expect_set("/input", input, 6);
    expect_set("/target", target, 3);
}

Test(csv, all_but_the_target)
{
    static const double input[] = {1, 3, 4, 6};
    static const double target[] = {2, 5};
    char packed[] = "x,t,y\n1,2,3\n4,5,6";

    text_write("a.csv", packed);
    convert_ok(WORDS("a.csv"), NULL, "t");
    expect_set("/input", input, 4);
    expect_set("/target", target, 2);
    fixture_gzip("a.csv.gz", packed, strlen(packed));
    convert_ok(WORDS("a.csv.gz"), NULL, "t");
    expect_set("/input", input, 4);
}

Test(csv, no_target_or_no_input)
{
    static const double numbers[] = {1, 2, 3, 4};

    text_write("a.csv", "x,y\n1,2\n3,4\n");
    convert_ok(WORDS("a.csv"), NULL, NULL);
    expect_set("/input", numbers, 4);
    convert_ok(WORDS("a.csv"), NULL, "x,y");
    expect_set("/target", numbers, 4);
}

/* Blanks, quotes with commas and ends of lines in them, a mark at the
 * beginning, empty lines, and no end behind the last line. */
Test(csv, notations)
{
    static const double input[] = {1, 2, -3, 4, 5, 6};

    text_write("a.csv", "\xef\xbb\xbf"
                        "\"a\" , text,x\n"
                        "1,\"two\nlines, \"\"quoted\"\"\", 2 \r\n\n"
                        "-3,,\"4\"\n"
                        "\t5,,+6");
    convert_ok(WORDS("a.csv"), "a,x", NULL);
    expect_set("/input", input, 6);
    fixture_refused("csv", WORDS("a.csv"), &(import_config_t){.input = "text"},
                    ERR_DATA, "a.csv:2: column text", "two");
}

/* More than the reader's buffer holds. */
Test(csv, long_files)
{
    enum { LINES = 20000 };
    str_buf_t text = {0};
    double *found = calloc(LINES, sizeof *found);

    cr_assert_not_null(found);
    str_buf_add(&text, "number\n");
    for (int i = 0; i < LINES; i++)
        str_buf_add(&text, "%d.25\n", i);
    text_write("long.csv", text.text);
    convert_ok(WORDS("long.csv"), NULL, NULL);
    cr_assert_eq(fixture_read("train-00.h5", "/input", found, LINES), LINES);
    for (int i = 0; i < LINES; i++)
        cr_assert_eq(found[i], i + 0.25);
    free(found);
    str_buf_free(&text);
}

Test(csv, mistakes)
{
    static const struct {
        const char *text, *input, *part;
        err_code_t code;
    } cases[] = {
        {"x,y\n1,2\n3,four\n", "x,y", ":3: column y", ERR_DATA},
        {"x,y\n1,2\n3,\n", "x,y", ":3: column y", ERR_DATA},
        {"x,y\n1,nan\n", "x,y", "\"nan\"", ERR_DATA},
        {"x,y\n1,2\n3\n", "x", ":3: expected 2 cells", ERR_DATA},
        {"x,y\n1,2,3\n", "x", ":2: expected 2 cells", ERR_DATA},
        {"x,y\n1,2\n", "z", "no column is called z", ERR_DATA},
        {"x,x\n1,2\n", "x", "more than one column", ERR_DATA},
        {"x,y\n1,\"2\n", "x", ":2: a quote", ERR_DATA},
        {"x,y\n1,\"2\"3\n", "x", ":2: text behind", ERR_DATA},
        {"x,y\n", "x", "no line", ERR_DATA},
        {"\n\n", "x", "empty", ERR_DATA},
        {"", "x", "empty", ERR_DATA},
        {"x,y\n1,2\n", "x,,y", "--input", ERR_USAGE},
        {"x,y\n1,2\n", "x,x", "twice", ERR_USAGE},
    };
    char cell[600];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const import_config_t config = {.input = cases[i].input};

        text_write("bad.csv", cases[i].text);
        fixture_refused("csv", WORDS("bad.csv"), &config, cases[i].code,
                        cases[i].part,
                        cases[i].code == ERR_DATA ? "bad.csv" : "");
    }
    snprintf(cell, sizeof cell, "x\n%0300d\n", 7);
    text_write("bad.csv", cell);
    fixture_refused("csv", WORDS("bad.csv"), &(import_config_t){.input = "x"},
                    ERR_DATA, "bad.csv:2", "255 bytes");
    fixture_write("bad.csv", "x\n1\0\n", 6);
    fixture_refused("csv", WORDS("bad.csv"), &(import_config_t){.input = "x"},
                    ERR_DATA, "bad.csv:2", "zero byte");
}

/* ---- parts --------------------------------------------------------------- */

enum { MANY = 140000, EDGE = 65536 };

/* Process 1 of 3. With several processes, rows are first counted, and each is
 * parsed later, by the process that converts it. */
static const import_share_t others = {.part = 1, .parts = 3};

static void table_write(const char *name, int first, int last)
{
    str_buf_t text = {0};

    str_buf_add(&text, "a,b\n");
    for (int i = first; i < last; i++)
        str_buf_add(&text, "%d,%d\n%s", i, -i, i % 1000 == 0 ? "\n" : "");
    if (strstr(name, ".gz") != NULL)
        fixture_gzip(name, text.text, text.length);
    else
        text_write(name, text.text);
    str_buf_free(&text);
}

/* Pass over [skip] rows, then over [more]; the next row must be right. */
static void check_skip(const import_config_t *config, int64_t skip,
                       int64_t more)
{
    const import_kind_t *kind = import_kind_find("csv");
    import_source_t *source = NULL;
    float row[2] = {0};
    void *const out[] = {row, NULL};
    err_t err = ERR_INIT;

    cr_assert_eq(kind->open(config, &source, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(source->rows, MANY);
    cr_assert_eq(kind->skip(source, skip, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(kind->skip(source, more, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(kind->read(source, 1, out, &err), ERR_OK, "%s", err.text);
    cr_expect_eq((int64_t)row[0], skip + more);
    cr_expect_eq((int64_t)row[1], -(skip + more));
    kind->close(source);
}

static void check_skips(const char *first, const char *second)
{
    static const int64_t skips[][2] = {{0, 0},
                                       {1, 0},
                                       {EDGE - 1, 0},
                                       {EDGE, 0},
                                       {EDGE + 1, 70000 - EDGE - 1},
                                       {70000, 0},
                                       {3, 2 * EDGE - 3},
                                       {2 * EDGE + 5, 1},
                                       {MANY - 1, 0}};
    char *words[] = {fixture_path(first), fixture_path(second)};
    import_config_t config = {
        .words = (const char *const *)words, .word_count = 2, .share = &others};

    table_write(first, 0, 70000);
    table_write(second, 70000, MANY);
    for (size_t i = 0; i < sizeof skips / sizeof skips[0]; i++)
        check_skip(&config, skips[i][0], skips[i][1]);
    config.share = NULL;
    check_skip(&config, 2 * EDGE, 7);
    free(words[0]);
    free(words[1]);
}

Test(csv, rows_are_passed_over)
{
    check_skips("a.csv", "b.csv");
    check_skips("a.csv.gz", "b.csv.gz");
}

/* A wrong number is found by the process that converts its row, and the message
 * names the line. */
Test(csv, a_wrong_number_behind_rows_that_were_passed_over)
{
    const import_kind_t *kind = import_kind_find("csv");
    char *words[] = {fixture_path("a.csv")};
    const import_config_t config = {
        .words = (const char *const *)words, .word_count = 1, .share = &others};
    import_source_t *source = NULL;
    float row[2];
    void *const out[] = {row, NULL};
    err_t err = ERR_INIT;

    text_write("a.csv", "a,b\n1,2\n\nx,4\n5,y\n7,8\n");
    cr_assert_eq(kind->open(&config, &source, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(kind->skip(source, 2, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(kind->read(source, 1, out, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "a.csv:5: column b"), "%s", err.text);
    kind->close(source);
    free(words[0]);
}

/* Write a.csv, [rows] rows whose last one has no line end, and b.csv, two
 * rows. */
static void tables_write(int rows, const char *title_a, const char *title_b)
{
    str_buf_t text = {0};

    str_buf_add(&text, "%s", title_a);
    for (int i = 0; i < rows; i++)
        str_buf_add(&text, "\n%d", 100000 + i);
    text_write("a.csv", text.text);
    str_buf_free(&text);
    str_buf_add(&text, "%s\n1\n2\n", title_b);
    text_write("b.csv", text.text);
    str_buf_free(&text);
}

/* Count the rows of both tables, write them again with other titles, pass over
 * EDGE rows, and read the next one to *row. */
static err_code_t skip_changed(int rows, const char *title_a,
                               const char *title_b, float *row, err_t *err)
{
    const import_kind_t *kind = import_kind_find("csv");
    char *words[] = {fixture_path("a.csv"), fixture_path("b.csv")};
    const import_config_t config = {
        .words = (const char *const *)words, .word_count = 2, .share = &others};
    void *const out[] = {row, NULL};
    import_source_t *source = NULL;
    err_code_t rc;

    tables_write(rows, "a", "a");
    cr_assert_eq(kind->open(&config, &source, err), ERR_OK, "%s", err->text);
    tables_write(rows, title_a, title_b);
    rc = kind->skip(source, EDGE, err);
    if (rc == ERR_OK)
        rc = kind->read(source, 1, out, err);
    kind->close(source);
    free(words[1]);
    free(words[0]);
    return rc;
}

/* Blanks in a title move all rows of its file. */
Test(csv, a_table_that_changes_is_not_read_from_within_a_line)
{
    static const struct {
        int rows;
        const char *title_a, *title_b;
        float next;          /* the row that is read; 0: none is */
        const char *changed; /* the file in the message */
    } cases[] = {{EDGE, "a", "a", 1, ""},
                 {EDGE, "a  ", "a", 0, "a.csv"},
                 {EDGE + 5, "a", "a", 100000 + EDGE, ""},
                 {EDGE + 5, "a  ", "a", 0, "a.csv"},
                 {EDGE - 1, "a", "a", 2, ""},
                 {EDGE - 1, "a", "a ", 0, "b.csv"},
                 {EDGE - 1, "a", "a      ", 0, "b.csv"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_t err = ERR_INIT;
        float row = 0;
        const err_code_t rc = skip_changed(cases[i].rows, cases[i].title_a,
                                           cases[i].title_b, &row, &err);

        cr_expect_eq(rc, cases[i].next > 0 ? ERR_OK : ERR_DATA, "case %zu: %s",
                     i, err.text);
        cr_expect_eq(row, cases[i].next, "case %zu", i);
        cr_expect_not_null(strstr(err.text, cases[i].changed), "case %zu: %s",
                           i, err.text);
    }
}
