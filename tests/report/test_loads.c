/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What each rank needed: rows of several starts, and rows of another form. */
#include "report/loads.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static report_loads_t *loads_open(void)
{
    report_loads_t *loads = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(report_loads_open(&loads, &err), ERR_OK, "%s", err.text);
    return loads;
}

/* Add the row [text]. False: the row is not valid JSON. The row is parsed in a
 * copy on the heap, so the address sanitizer sees reads beyond the end of the
 * row. */
static bool add(report_loads_t *loads, const char *text)
{
    char *line = str_dup(text);
    report_row_t row;
    err_t err = ERR_INIT;
    const bool valid = report_row_parse(line, strlen(line), &row);

    if (valid)
        cr_assert_eq(report_loads_add(loads, &row, &err), ERR_OK, "%s",
                     err.text);
    free(line);
    return valid;
}

/* Add a row of [steps] steps with the object [ranks]. */
static void add_ranks(report_loads_t *loads, int steps, const char *ranks)
{
    char *text =
        str_printf("{\"event\": \"ranks\", \"step\": 9, \"steps\": %d, "
                   "\"ranks\": %s}",
                   steps, ranks);

    cr_assert(add(loads, text), "%s", text);
    free(text);
}

/* Number [at] of the rank [rank] on host [host]; NAN: there is no such rank. */
static double number_of(const report_loads_t *loads, const char *host, int rank,
                        size_t at)
{
    json_t *all = report_loads_json(loads), *one;
    const json_t *names = json_object_get(all, "hosts");
    double value = NAN;
    size_t i;

    json_array_foreach(json_object_get(all, "ranks"), i, one)
    {
        const size_t h = (size_t)json_integer_value(json_array_get(one, 0));
        const char *name = json_string_value(json_array_get(names, h));

        cr_expect_eq(json_array_size(one), 10);
        if (json_integer_value(json_array_get(one, 1)) == rank &&
            strcmp(name, host) == 0)
            value = json_number_value(json_array_get(one, at));
    }
    json_decref(all);
    return value;
}

/* The object of a row; each argument is the text of a JSON list. */
#define LISTS(hosts, host, data, compute, comm, throttled, delay)  \
    "{\"hosts\": " hosts ", \"host\": " host ", \"data_s\": " data \
    ", \"compute_s\": " compute ", \"comm_s\": " comm              \
    ", \"throttled_s\": " throttled ", \"delay_s\": " delay "}"

enum { STEPS = 2, TIMES, MOST, DATA, COMPUTE, COMM, THROTTLED, DELAY };

Test(loads, are_added_up_over_rows)
{
    report_loads_t *loads = loads_open();

    add_ranks(loads, 10,
              LISTS("[\"n1\", \"n2\"]", "[0,0,1]", "[1,0,0]", "[1,1,3]",
                    "[1,2,0]", "[0,0,0.5]", "[0,0,0.25]"));
    add_ranks(loads, 30,
              LISTS("[\"n1\", \"n2\"]", "[0,0,1]", "[0,0,0]", "[2,2,2]",
                    "[1,2,0]", "[0,0,0]", "[0,0,0]"));
    cr_expect_eq(number_of(loads, "n1", 0, STEPS), 40);
    cr_expect_eq(number_of(loads, "n1", 0, TIMES), 1);
    cr_expect_eq(number_of(loads, "n1", 1, TIMES), 0.875);
    cr_expect_eq(number_of(loads, "n1", 1, COMPUTE), 1.75);
    cr_expect_eq(number_of(loads, "n1", 0, DATA), 0.25);
    cr_expect_eq(number_of(loads, "n2", 2, TIMES), 1.125);
    cr_expect_eq(number_of(loads, "n2", 2, MOST), 1.5);
    cr_expect_eq(number_of(loads, "n2", 2, THROTTLED), 0.125);
    cr_expect_eq(number_of(loads, "n2", 2, DELAY), 0.0625);
    cr_expect_eq(number_of(loads, "n1", 1, COMM), 2);
    cr_expect_eq(report_loads_bad(loads), 0);
    report_loads_close(loads);
}

/* A later start has other hosts and another number of ranks. */
Test(loads, of_starts_with_other_ranks)
{
    report_loads_t *loads = loads_open();

    add_ranks(loads, 1,
              LISTS("[\"n1\", \"n2\"]", "[0,1]", "[0,0]", "[1,4]", "[0,0]",
                    "[0,0]", "[0,0]"));
    add_ranks(loads, 3,
              LISTS("[\"n3\", \"n1\"]", "[0,1,1]", "[0,0,0]", "[3,2,1]",
                    "[0,0,0]", "[0,0,0]", "[0,0,0]"));
    cr_expect_eq(number_of(loads, "n1", 0, TIMES), 1);
    cr_expect_eq(number_of(loads, "n2", 1, TIMES), 4);
    cr_expect_eq(number_of(loads, "n3", 0, TIMES), 1.5);
    cr_expect_eq(number_of(loads, "n3", 0, STEPS), 3);
    cr_expect_eq(number_of(loads, "n1", 1, TIMES), 1);
    cr_expect_eq(number_of(loads, "n1", 2, TIMES), 0.5);
    cr_expect(isnan(number_of(loads, "n2", 0, TIMES)));
    report_loads_close(loads);
}

/* The object of a row of two ranks. */
#define OBJECT(hosts, host, data) \
    LISTS(hosts, host, data, "[1,1]", "[1,1]", "[0,0]", "[0,0]")

Test(loads, rows_of_another_form_are_left_out)
{
    static const char *const objects[] = {
        "7",
        "[1]",
        "{}",
        OBJECT("[\"a\"]", "[0,0]", "[1]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,2,3]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,-2]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,1e300]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,null]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,]"),
        OBJECT("[\"a\"]", "[0,0]", "[1 1]"),
        OBJECT("[\"a\"]", "[0,0]", "[1,[2]]"),
        OBJECT("[\"a\"]", "[0,0]", "\"[1,1]\""),
        OBJECT("[\"a\"]", "[0,1]", "[1,1]"),
        OBJECT("[\"a\"]", "[0,16000]", "[1,1]"),
        OBJECT("[\"a\"]", "[0,-1]", "[1,1]"),
        OBJECT("[\"a\"]", "[0,0.5]", "[1,1]"),
        OBJECT("[\"a\", \"b\"]", "[0,0]", "[1,1]"),
        OBJECT("[\"a\", 7]", "[0,1]", "[1,1]"),
        OBJECT("[]", "[]", "[]"),
    };
    report_loads_t *loads = loads_open();
    const int count = (int)(sizeof objects / sizeof *objects);
    json_t *json;

    for (int i = 0; i < count; i++) {
        add_ranks(loads, 1, objects[i]);
        cr_expect_eq(report_loads_bad(loads), i + 1, "%s", objects[i]);
    }
    add_ranks(loads, 0, OBJECT("[\"a\"]", "[0,0]", "[1,1]"));
    cr_assert(add(loads, "{\"event\": \"ranks\", \"step\": 1, \"steps\": 1}"));
    cr_expect_eq(report_loads_bad(loads), count + 2);
    json = report_loads_json(loads);
    cr_expect(json_is_null(json));
    json_decref(json);
    add_ranks(loads, 1, OBJECT("[\"a\"]", "[ 0 , 0 ]", "[1, 1]"));
    cr_expect_eq(report_loads_bad(loads), count + 2);
    cr_expect_eq(number_of(loads, "a", 1, DATA), 1);
    report_loads_close(loads);
}

/* Names come from a file, so characters that control a terminal are made
 * visible. Two names that look equal then are one host. */
Test(loads, names_are_made_visible)
{
    report_loads_t *loads = loads_open();

    add_ranks(loads, 1, OBJECT("[\"</script>\xff\"]", "[0,0]", "[1,1]"));
    cr_expect_eq(number_of(loads, "</script>\\xff", 0, DATA), 1);
    report_loads_close(loads);
}

/* The first row has as many ranks as are kept. In the second row these ranks
 * are on another host: none of them is kept. */
Test(loads, are_bounded)
{
    report_loads_t *loads = loads_open();
    str_buf_t host = {0}, zeros = {0}, object = {0};

    for (int r = 0; r < REPORT_LOADS_MAX; r++) {
        str_buf_add(&host, "%s0", r > 0 ? "," : "");
        str_buf_add(&zeros, "%s%d", r > 0 ? "," : "", r == 5);
    }
    for (int name = 'a'; name <= 'b'; name++) {
        str_buf_add(
            &object,
            LISTS("[\"%c\"]", "[%s]", "[%s]", "[%s]", "[%s]", "[%s]", "[%s]"),
            name, host.text, zeros.text, zeros.text, zeros.text, zeros.text,
            zeros.text);
        add_ranks(loads, 1, object.text);
        str_buf_free(&object);
    }
    cr_expect_eq(report_loads_bad(loads), 0);
    cr_expect_eq(report_loads_left_out(loads), REPORT_LOADS_MAX);
    /* The median is 0. */
    cr_expect_eq(number_of(loads, "a", 5, TIMES), 1);
    cr_expect_eq(number_of(loads, "a", 5, COMPUTE), 1);
    report_loads_close(loads);
    str_buf_free(&zeros);
    str_buf_free(&host);
}

/* The two rows together name more hosts than are kept. */
Test(loads, hosts_are_bounded)
{
    report_loads_t *loads = loads_open();
    str_buf_t names = {0}, host = {0}, zeros = {0}, object = {0};
    json_t *json;

    for (int r = 0; r < REPORT_LOADS_MAX; r++) {
        str_buf_add(&host, "%s%d", r > 0 ? "," : "", r);
        str_buf_add(&zeros, "%s0", r > 0 ? "," : "");
    }
    for (int row = 0; row < 2; row++) {
        str_buf_free(&names);
        for (int r = 0; r < REPORT_LOADS_MAX; r++)
            str_buf_add(&names, "%s\"h%d\"", r > 0 ? "," : "",
                        row * REPORT_LOADS_MAX / 2 + r);
        str_buf_add(
            &object,
            LISTS("[%s]", "[%s]", "[%s]", "[%s]", "[%s]", "[%s]", "[%s]"),
            names.text, host.text, zeros.text, zeros.text, zeros.text,
            zeros.text, zeros.text);
        add_ranks(loads, 1, object.text);
        str_buf_free(&object);
    }
    cr_expect_eq(report_loads_bad(loads), 0);
    cr_expect_eq(report_loads_left_out(loads), REPORT_LOADS_MAX);
    json = report_loads_json(loads);
    cr_expect_eq(json_array_size(json_object_get(json, "hosts")),
                 REPORT_LOADS_MAX);
    cr_expect_eq(json_array_size(json_object_get(json, "ranks")),
                 REPORT_LOADS_MAX);
    json_decref(json);
    report_loads_close(loads);
    str_buf_free(&zeros);
    str_buf_free(&host);
    str_buf_free(&names);
}

/* Any bit of a row may be wrong: then the row is left out, or its numbers are
 * finite. */
Test(loads, flipped_bits)
{
    char row[] = "{\"event\": \"ranks\", \"steps\": 5, \"ranks\": " OBJECT(
        "[\"a\", \"b\"]", "[0,1]", "[0.25,1e-3]") "}";
    report_loads_t *loads = loads_open();
    const size_t bits = 8 * (sizeof row - 1);
    json_t *json;
    char *text;

    for (size_t bit = 0; bit < bits; bit++) {
        row[bit / 8] = (char)(row[bit / 8] ^ (1 << bit % 8));
        add(loads, row);
        row[bit / 8] = (char)(row[bit / 8] ^ (1 << bit % 8));
    }
    cr_expect_gt(report_loads_bad(loads), 100);
    json = report_loads_json(loads);
    text = json_dumps(json, 0);
    cr_expect_not_null(text, "a number is not finite");
    free(text);
    json_decref(json);
    report_loads_close(loads);
}
