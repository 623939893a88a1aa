/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/str.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(str, buffer_grows_and_keeps_its_text)
{
    str_buf_t buf = {0};
    int i;

    for (i = 0; i < 1000; i++)
        str_buf_add(&buf, "%d,", i % 10);
    cr_assert_eq(buf.length, 2000);
    cr_assert_eq(strlen(buf.text), 2000);
    cr_assert_eq(strncmp(buf.text + 1980, "0,1,2,3,4,5,6,7,8,9,", 20), 0);
    str_buf_free(&buf);
    cr_assert_null(buf.text);
    str_buf_free(&buf);
}

Test(str, buffer_takes_pieces_of_every_length)
{
    char piece[300];
    str_buf_t buf;
    size_t length;

    for (length = 0; length < sizeof piece; length++) {
        buf = (str_buf_t){0};
        memset(piece, 'p', length);
        piece[length] = '\0';
        str_buf_add(&buf, "%s", piece);
        str_buf_add(&buf, "%s", piece);
        cr_assert_eq(strlen(buf.text), 2 * length);
        str_buf_free(&buf);
    }
}

Test(str, copies)
{
    char *copy = str_dup("x"), *text = str_printf("%s-%d", "a", 1);
    char *empty = str_printf("%s", "");

    cr_assert_str_eq(copy, "x");
    cr_assert_str_eq(text, "a-1");
    cr_assert_str_eq(empty, "");
    free(copy);
    free(text);
    free(empty);
}

Test(str, integers_are_the_whole_text)
{
    static const char *const bad[] = {
        "",   " 1", "1 ", "1.0", "1e3", "x", "0x10", "-", "9223372036854775808",
        "--1"};
    int64_t value = 5;
    size_t i;

    cr_assert(str_to_int("-12", &value));
    cr_assert_eq(value, -12);
    cr_assert(str_to_int("9223372036854775807", &value));
    cr_assert_eq(value, INT64_MAX);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_not(str_to_int(bad[i], &value), "'%s'", bad[i]);
    cr_assert_eq(value, INT64_MAX);
}

Test(str, reals_are_the_whole_text_and_finite)
{
    static const char *const bad[] = {"",      " 1",    "1 ",  "1,5",
                                      "x",     "0x1p3", "inf", "nan",
                                      "1e999", "e",     ".",   "1e"};
    double value = 5;
    size_t i;

    cr_assert(str_to_real("1.0e-3", &value));
    cr_assert_eq(value, 1e-3);
    cr_assert(str_to_real("-2", &value));
    cr_assert_eq(value, -2);
    cr_assert(str_to_real(".5", &value));
    cr_assert_eq(value, 0.5);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_not(str_to_real(bad[i], &value), "'%s'", bad[i]);
    cr_assert_eq(value, 0.5);
}

Test(str, nearest_finds_the_likely_typo_only)
{
    static const char *const names[] = {"epochs", "batch", "precision", "lr",
                                        NULL};
    static const struct {
        const char *typo, *meant;
    } rows[] = {
        {"epoch", "epochs"},
        {"epcohs", "epochs"},
        {"Epochs", "epochs"},
        {"btach", "batch"},
        {"precission", "precision"},
        {"percisoin", "precision"},
        {"l", "lr"},
        {"workers", NULL},
        {"momentum", NULL},
        {"", NULL},
    };
    char big[100];
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *found = str_nearest(rows[i].typo, names);

        if (rows[i].meant == NULL)
            cr_expect_null(found, "%s: %s", rows[i].typo, found);
        else
            cr_expect_str_eq(found, rows[i].meant);
    }
    memset(big, 'e', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    cr_assert_null(str_nearest(big, names));
}

Test(str, bytes_are_told_in_binary_units)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536 * 1024, "1.5 MiB"},
        {1024 * 1024 - 1, "1.0 MiB"},
        {1ull << 40, "1.0 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char out[32];
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_str_eq(str_bytes(rows[i].bytes, out, sizeof out),
                         rows[i].text);
}

Test(str, counts_have_commas)
{
    char out[32];

    cr_assert_str_eq(str_count(0, out, sizeof out), "0");
    cr_assert_str_eq(str_count(999, out, sizeof out), "999");
    cr_assert_str_eq(str_count(1000, out, sizeof out), "1,000");
    cr_assert_str_eq(str_count(1234567, out, sizeof out), "1,234,567");
    cr_assert_str_eq(str_count(UINT64_MAX, out, sizeof out),
                     "18,446,744,073,709,551,615");
    cr_assert_str_eq(str_count(1234567, out, 4), "1,2");
}

Test(str, nothing_that_a_terminal_acts_on_is_shown_raw)
{
    static const struct {
        const char *text;
        const char *line;  /* expected without [lines] */
        const char *lines; /* expected with [lines] */
    } rows[] = {
        {"plain text", "plain text", "plain text"},
        {"a\033[31mb", "a\\x1b[31mb", "a\\x1b[31mb"},
        {"a\nb\tc", "a\\x0ab\\x09c", "a\nb\tc"},
        {"\r\b\a\177", "\\x0d\\x08\\x07\\x7f", "\\x0d\\x08\\x07\\x7f"},
        /* The C1 control CSI, as a byte and as UTF-8. */
        {"\2331m", "\\x9b1m", "\\x9b1m"},
        {"\302\2331m", "\\xc2\\x9b1m", "\\xc2\\x9b1m"},
        /* Valid UTF-8 is kept; truncated, overlong and surrogate sequences are
         * not. */
        {"Größe µ 漢 😀", "Größe µ 漢 😀", "Größe µ 漢 😀"},
        {"\303", "\\xc3", "\\xc3"},
        {"\300\233", "\\xc0\\x9b", "\\xc0\\x9b"},
        {"\340\202\233", "\\xe0\\x82\\x9b", "\\xe0\\x82\\x9b"},
        {"\355\240\200", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"},
        {"\364\220\200\200", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80"},
        {"\342\200\256txt", "\\xe2\\x80\\xaetxt", "\\xe2\\x80\\xaetxt"},
        {"", "", ""},
    };
    char once[128], twice[128];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *lines = str_visible_dup(rows[i].text);

        cr_expect_str_eq(str_visible(rows[i].text, once, sizeof once, false),
                         rows[i].line);
        cr_expect_str_eq(str_visible(once, twice, sizeof twice, false), once);
        cr_expect_str_eq(lines, rows[i].lines);
        free(lines);
    }
}

Test(str, what_is_shown_is_cut_between_characters)
{
    char out[6];

    cr_assert_str_eq(str_visible("ab\033cd", out, sizeof out, false), "ab");
    cr_assert_str_eq(str_visible("a\033cd", out, sizeof out, false), "a\\x1b");
    cr_assert_str_eq(str_visible("abcdöf", out, sizeof out, false), "abcd");
    cr_assert_str_eq(str_visible("abc", out, 1, false), "");
}
