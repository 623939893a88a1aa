/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* metrics.jsonl, read while it is written, cut and replaced. */
#include "report/rows.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* Write [text] to [dir]/metrics.jsonl; [mode] as for fopen. */
static void put(const char *dir, const char *mode, const char *text)
{
    char *path = str_printf("%s/metrics.jsonl", dir);
    FILE *file = fopen(path, mode);

    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    free(path);
}

static report_rows_t *rows_of(const char *dir)
{
    report_rows_t *rows = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(report_rows_open(dir, &rows, NULL, &err), ERR_OK, "%s",
                 err.text);
    return rows;
}

/* The step of the next row; -1: there is none now. */
static int64_t next(report_rows_t *rows, bool events)
{
    report_row_t row;
    err_t err = ERR_INIT;
    bool got = false;
    err_code_t rc = events ? report_rows_next_event(rows, &row, &got, &err)
                           : report_rows_next(rows, &row, &got, &err);

    cr_assert_eq(rc, ERR_OK, "%s", err.text);
    return got ? report_row_step(&row) : -1;
}

Test(rows, a_row_comes_in_two_writes)
{
    char home[] = "rows.XXXXXX";
    report_rows_t *rows;

    cr_assert_not_null(mkdtemp(home));
    put(home, "w", "{\"step\": 1}\n{\"st");
    rows = rows_of(home);
    cr_expect_eq(next(rows, false), 1);
    cr_expect_eq(next(rows, false), -1);
    cr_expect(report_rows_torn(rows));
    put(home, "a", "ep\": 2}\n");
    cr_expect_eq(next(rows, false), 2);
    cr_expect_eq(next(rows, false), -1);
    cr_expect_not(report_rows_torn(rows));
    cr_expect_not(report_rows_stale(rows));
    /* A resume cuts rows, or puts another file there. */
    put(home, "w", "{\"step\": 1}\n");
    cr_expect(report_rows_stale(rows));
    report_rows_close(rows);
    file_remove_tree(home, NULL);
}

Test(rows, a_file_is_replaced)
{
    char home[] = "rows.XXXXXX", *from, *to;
    report_rows_t *rows;

    cr_assert_not_null(mkdtemp(home));
    put(home, "w", "{\"step\": 1}\n");
    rows = rows_of(home);
    cr_expect_eq(next(rows, false), 1);
    from = str_printf("%s/metrics.jsonl", home);
    to = str_printf("%s/old", home);
    cr_assert_eq(rename(from, to), 0);
    cr_expect_not(report_rows_stale(rows), "there is no other file yet");
    put(home, "w", "{\"step\": 1}\n{\"step\": 2}\n");
    cr_expect(report_rows_stale(rows));
    report_rows_close(rows);
    free(from);
    free(to);
    file_remove_tree(home, NULL);
}

/* Lines that are too long or no rows are left out, those behind them are not.
 */
Test(rows, bad_lines)
{
    char home[] = "rows.XXXXXX";
    const size_t length = 3 << 20;
    char *line = malloc(length + 1);
    report_rows_t *rows;

    cr_assert_not_null(mkdtemp(home));
    cr_assert_not_null(line);
    memset(line, 'x', length);
    line[length] = '\0';
    put(home, "w", "{\"step\": 1}\n\n[1]\n");
    put(home, "a", line);
    put(home, "a", "\n{\"step\": 2}\n");
    rows = rows_of(home);
    cr_expect_eq(next(rows, false), 1);
    cr_expect_eq(next(rows, false), 2);
    cr_expect_eq(next(rows, false), -1);
    cr_expect_eq(report_rows_bad(rows), 2);
    report_rows_close(rows);
    free(line);
    file_remove_tree(home, NULL);
}

/* Only events and the last row are needed. */
Test(rows, events)
{
    char home[] = "rows.XXXXXX";
    str_buf_t text = {0};
    report_rows_t *rows;
    int64_t step, last = -1, found = 0, count = 0;

    cr_assert_not_null(mkdtemp(home));
    for (int i = 1; i <= 1000; i++)
        str_buf_add(&text,
                    i % 100 == 0 ? "{\"event\": \"e\", \"step\": %d}\n"
                                 : "{\"step\": %d}\n",
                    i);
    str_buf_add(&text, "{\"step\": 1001}\n");
    put(home, "w", text.text);
    rows = rows_of(home);
    while ((step = next(rows, true)) >= 0) {
        found += step % 100 == 0;
        count++;
        last = step;
    }
    cr_expect_eq(found, 10);
    cr_expect_eq(last, 1001);
    cr_expect_lt(count, 100, "rows of steps are left out");
    report_rows_close(rows);
    str_buf_free(&text);
    file_remove_tree(home, NULL);
}
