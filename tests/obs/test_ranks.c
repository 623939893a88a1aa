/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What each rank needed: means over windows, and number and size of rows. */
#include "obs/ranks.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#define RANKS 3

static obs_ranks_t *ranks_open(void)
{
    static const int hosts[RANKS] = {0, 1, 0};
    static const char *const names[] = {"n1", "a \"b\"\\\n\xc3\xa9"};
    obs_ranks_t *ranks = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_ranks_open(&(obs_ranks_places_t){hosts, RANKS, names},
                                &ranks, &err),
                 ERR_OK, "%s", err.text);
    return ranks;
}

/* Add a window of [steps] steps. In each step rank r computed for r + [more]
 * seconds. */
static void window_add(obs_ranks_t *ranks, int64_t steps, double more)
{
    obs_load_t loads[RANKS];

    for (int r = 0; r < RANKS; r++)
        loads[r] = (obs_load_t){.at = {[OBS_LOAD_COMPUTE] = r + more,
                                       [OBS_LOAD_DATA] = 1e-5 / 3,
                                       [OBS_LOAD_DELAY] = NAN}};
    obs_ranks_add(ranks, loads, steps);
}

static json_t *row_take(obs_ranks_t *ranks, int64_t *steps)
{
    str_buf_t text = {0};
    json_error_t why;
    json_t *object;

    *steps = obs_ranks_print(ranks, &text);
    object = json_loads(text.text, 0, &why);
    cr_assert_not_null(object, "%s: %s", why.text, text.text);
    str_buf_free(&text);
    return object;
}

static double number_of(const json_t *object, const char *key, int r)
{
    const json_t *list = json_object_get(object, key);

    cr_assert_eq(json_array_size(list), RANKS, "%s", key);
    return json_number_value(json_array_get(list, (size_t)r));
}

Test(ranks, a_row_has_means_over_steps)
{
    obs_ranks_t *ranks = ranks_open();
    json_t *object;
    int64_t steps;

    window_add(ranks, 30, 1);
    window_add(ranks, 10, 5);
    cr_expect_eq(obs_ranks_windows(ranks), 2);
    object = row_take(ranks, &steps);
    cr_expect_eq(steps, 40);
    cr_expect_eq(obs_ranks_windows(ranks), 0);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(number_of(object, "compute_s", r), r + 2.0);
        cr_expect_float_eq(number_of(object, "data_s", r), 1e-5 / 3, 1e-9);
        cr_expect_eq(number_of(object, "comm_s", r), 0);
        cr_expect_eq(number_of(object, "throttled_s", r), 0);
        cr_expect_eq(number_of(object, "delay_s", r), 0, "no number in JSON");
        cr_expect_eq(number_of(object, "host", r), r == 1);
    }
    cr_expect_str_eq(
        json_string_value(json_array_get(json_object_get(object, "hosts"), 1)),
        "a \"b\"\\?\xc3\xa9");
    json_decref(object);
    /* The next row has only later windows. */
    window_add(ranks, 7, 2);
    object = row_take(ranks, &steps);
    cr_expect_eq(steps, 7);
    cr_expect_eq(number_of(object, "compute_s", 0), 2);
    json_decref(object);
    obs_ranks_close(ranks);
}

/* A week of windows of a minute has few rows. Each window is in exactly one
 * row, except the last windows, which wait for the next row. */
Test(ranks, a_week_has_few_rows)
{
    obs_ranks_t *ranks = ranks_open();
    int64_t all = 0, since = 0, most = 0, steps;
    int rows = 0;

    for (int w = 1; w <= 7 * 24 * 60; w++) {
        window_add(ranks, 1, 0);
        since++;
        if (w <= 8)
            cr_expect(obs_ranks_due(ranks), "window %d", w);
        if (!obs_ranks_due(ranks))
            continue;
        json_decref(row_take(ranks, &steps));
        cr_expect_eq(steps, since);
        cr_expect(!obs_ranks_due(ranks), "a row of nothing");
        most = since > most ? since : most;
        all += steps;
        since = 0;
        rows++;
    }
    cr_expect_lt(rows, 70, "%d rows", rows);
    cr_expect_leq(most, 7 * 24 * 60 / 8);
    cr_expect_eq(all + obs_ranks_windows(ranks), 7 * 24 * 60);
    obs_ranks_close(ranks);
}

/* The largest row fits into a line that readers take. */
Test(ranks, the_largest_row_is_less_than_a_mebibyte)
{
    static int hosts[OBS_RANKS_MAX];
    static const char *names[OBS_RANKS_MAX];
    static obs_load_t loads[OBS_RANKS_MAX];
    static const char name[] =
        "a-host-whose-name-has-as-many-characters-as-linux-allows-for-one";
    obs_ranks_t *ranks = NULL;
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    for (int r = 0; r < OBS_RANKS_MAX; r++) {
        hosts[r] = r;
        names[r] = name;
        for (int i = 0; i < OBS_LOAD_NUMBERS; i++)
            loads[r].at[i] = 0.000123456;
    }
    cr_assert_eq(
        obs_ranks_open(&(obs_ranks_places_t){hosts, OBS_RANKS_MAX, names},
                       &ranks, &err),
        ERR_OK, "%s", err.text);
    obs_ranks_add(ranks, loads, 1);
    obs_ranks_print(ranks, &text);
    cr_expect_lt(text.length, ((size_t)1 << 20) - 512, "%zu bytes",
                 text.length);
    str_buf_free(&text);
    obs_ranks_close(ranks);
}
