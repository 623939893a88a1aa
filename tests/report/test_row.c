/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/row.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse a copy of [line] that ends where its memory ends, so that sanitizers
 * see what is read behind it. */
static bool parse(const char *line, report_row_t *row, char **copy)
{
    *copy = strdup(line);
    return report_row_parse(*copy, strlen(*copy), row);
}

Test(row, a_row_of_a_step)
{
    report_row_t row;
    char *copy;

    cr_assert(parse("{\"step\": 12, \"time\": \"2031-05-04T10:20:30.125Z\", "
                    "\"loss\": 2.5e-1, \"lr\":1e3 ,\"accuracy\": null}",
                    &row, &copy));
    cr_expect_eq(row.count, 5);
    cr_expect_eq(report_row_step(&row), 12);
    cr_expect_eq(report_row_number(&row, "loss", NAN), 0.25);
    cr_expect_eq(report_row_number(&row, "lr", NAN), 1000);
    cr_expect(isnan(report_row_number(&row, "accuracy", NAN)));
    cr_expect(report_text_is(report_row_find(&row, "time")->text,
                             "2031-05-04T10:20:30.125Z"));
    cr_expect_null(report_row_find(&row, "los"));
    free(copy);
}

/* Numbers as metrics.jsonl has them, and others that JSON allows. */
Test(row, numbers)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "7",
                                        "2.3025850929940459",
                                        "1e-05",
                                        "1E+5",
                                        "-1.5e-300",
                                        "0.00012345678901234567",
                                        "1.7976931348623157e308",
                                        "123456789012345678901234567890",
                                        "4.9e-324",
                                        "0e9999",
                                        "1e-400"};
    char line[128];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const double want = strtod(texts[i], NULL);
        report_row_t row;
        double found;
        char *copy;

        snprintf(line, sizeof line, "{\"x\": %s}", texts[i]);
        cr_assert(parse(line, &row, &copy), "%s", line);
        found = report_row_number(&row, "x", NAN);
        cr_expect_leq(fabs(found - want), 1e-15 * fabs(want), "%s: %.17g",
                      texts[i], found);
        free(copy);
    }
}

Test(row, what_is_no_row)
{
    static const char *const lines[] = {"",
                                        "{",
                                        "[1]",
                                        "null",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\": 1",
                                        "{\"a\": 1}}",
                                        "{\"a\": 1,}",
                                        "{a: 1}",
                                        "{\"a\": nan}",
                                        "{\"a\": inf}",
                                        "{\"a\": +1}",
                                        "{\"a\": 01}",
                                        "{\"a\": 1.}",
                                        "{\"a\": .5}",
                                        "{\"a\": 1e}",
                                        "{\"a\": 0x1}",
                                        "{\"a\": -}",
                                        "{\"a\": \"x}",
                                        "{\"a\": \"x\\\"}",
                                        "{\"a\": [1, 2}",
                                        "{\"a\": tru}",
                                        "{\"a\": 1} x",
                                        "{\"a\": \"\\"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        report_row_t row;
        char *copy;

        cr_expect_not(parse(lines[i], &row, &copy), "%s", lines[i]);
        free(copy);
    }
}

/* Each beginning of a line is refused, as its write may have been cut off. */
Test(row, cut_anywhere)
{
    const char *line = "{\"step\": 1, \"t\": \"a\\\"b\", \"l\": [1, {\"x\": "
                       "\"]\"}], \"n\": -1.5e-3, \"b\": true, \"z\": null}";
    report_row_t row;
    char *copy;

    cr_assert(parse(line, &row, &copy));
    cr_expect_eq(row.count, 6);
    cr_expect_eq(report_row_number(&row, "n", NAN), -1.5e-3);
    cr_expect_eq(report_row_find(&row, "l")->kind, REPORT_OTHER);
    free(copy);
    for (size_t length = 0; length < strlen(line); length++) {
        char *part = strndup(line, length);

        cr_expect_not(report_row_parse(part, length, &row), "%s", part);
        free(part);
    }
}

/* More fields than there is room for, and steps that no run reaches. */
Test(row, limits)
{
    char *line = malloc(64 * 1024);
    size_t length = 0;
    report_row_t row;

    cr_assert_not_null(line);
    for (int i = 0; i < REPORT_FIELDS_MAX + 50; i++)
        length += (size_t)sprintf(line + length, "%s\"k%d\": %d",
                                  i == 0 ? "{" : ", ", i, i);
    length += (size_t)sprintf(line + length, "}");
    cr_assert(report_row_parse(line, length, &row));
    cr_expect_eq(row.count, REPORT_FIELDS_MAX);
    length = (size_t)sprintf(line, "{\"step\": 1e300}");
    cr_assert(report_row_parse(line, length, &row));
    cr_expect_eq(report_row_step(&row), -1);
    length = (size_t)sprintf(line, "{\"step\": -3}");
    cr_assert(report_row_parse(line, length, &row));
    cr_expect_eq(report_row_step(&row), -1);
    free(line);
}

/* Write one character for each element of the list [text] to [out]: n(umber),
 * t(ext) or o(ther). If the list is not valid, "bad" follows. */
static void elements(const char *text, char *out)
{
    static const char letters[] = {
        [REPORT_NUMBER] = 'n', [REPORT_TEXT] = 't', [REPORT_OTHER] = 'o'};
    char *copy = strdup(text);
    report_list_t list =
        report_list_of((report_text_t){.at = copy, .length = strlen(copy)});
    report_field_t item;

    while (report_list_next(&list, &item))
        *out++ = letters[item.kind];
    strcpy(out, list.bad ? "bad" : "");
    free(copy);
}

Test(row, lists)
{
    static const char *const pairs[][2] = {
        {"[]", ""},
        {"[ ]", ""},
        {"[1]", "n"},
        {"[1,2, 3 ,-4e5]", "nnnn"},
        {"[\"],\", [2], {}]", "too"},
        {"[null,true]", "oo"},
        {"", "bad"},
        {"[", "bad"},
        {"]", "bad"},
        {"7", "bad"},
        {"[1", "bad"},
        {"[,1]", "bad"},
        {"[1,]", "bad"},
        {"[1 2]", "bad"},
        {"[1,,2]", "nbad"},
        {"[1]]", "bad"},
        {"[[1]", "bad"},
        {"[\"a]", "bad"},
        {"[1,x]", "nbad"},
    };
    char found[16];

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        elements(pairs[i][0], found);
        cr_expect_str_eq(found, pairs[i][1], "%s: %s", pairs[i][0], found);
    }
}
