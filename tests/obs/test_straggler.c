/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Who is named as slow, and why: a table of four ranks on two hosts, whose
 * loads stay the same in all windows. */
#include "obs/straggler.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define RANKS 4
#define FOUND 8

static const int hosts[RANKS] = {0, 0, 1, 1};

/* A rank that needs 10 ms for itself in steps of 15 ms. */
#define LOAD(data_ms, compute_ms, ...)                \
    {                                                 \
        .at = {                                       \
            [OBS_LOAD_STEP] = 0.015,                  \
            [OBS_LOAD_DATA] = 1e-3 * (data_ms),       \
            [OBS_LOAD_COMPUTE] = 1e-3 * (compute_ms), \
            [OBS_LOAD_COMM] = 0.005,                  \
            [OBS_LOAD_BYTES] = 1e6,                   \
            __VA_ARGS__                               \
        }                                             \
    }
#define WELL LOAD(1, 9, [OBS_LOAD_HERTZ] = 2e9)

/* The same in steps of a second. */
#define IN_LONG(compute_ms)                           \
    {                                                 \
        .at = {                                       \
            [OBS_LOAD_STEP] = 1,                      \
            [OBS_LOAD_DATA] = 0.001,                  \
            [OBS_LOAD_COMPUTE] = 1e-3 * (compute_ms), \
            [OBS_LOAD_COMM] = 0.98,                   \
        }                                             \
    }

typedef struct row {
    const char *name;
    obs_load_t loads[RANKS];
    double links[2]; /* seconds of a message of 1,000 bytes; 0: none */
    /* Expected: nothing if [text] is NULL. */
    int rank, host;
    const char *text;
    double times; /* seconds over median */
} row_t;

static const row_t rows[] = {
    {.name = "all equal", .loads = {WELL, WELL, WELL, WELL}},
    {.name = "a little above the median",
     .loads = {WELL, WELL, WELL, LOAD(1, 10.9, [OBS_LOAD_HERTZ] = 2e9)}},
    {.name = "far above the median, in steps that wait for messages",
     .loads = {IN_LONG(9), IN_LONG(9), IN_LONG(9), IN_LONG(19)}},
    {.name = "computes",
     .loads = {WELL, LOAD(1, 19, [OBS_LOAD_HERTZ] = 2e9), WELL, WELL},
     .rank = 1,
     .text = "compute",
     .times = 2},
    {.name = "reads",
     .loads = {WELL, WELL, LOAD(31, 9, [OBS_LOAD_HERTZ] = 2e9), WELL},
     .rank = 2,
     .host = 1,
     .text = "data",
     .times = 4},
    {.name = "shares its core",
     .loads = {WELL, WELL, WELL,
               LOAD(1, 29, [OBS_LOAD_DELAY] = 0.018, [OBS_LOAD_HERTZ] = 2e9)},
     .rank = 3,
     .host = 1,
     .text = "compute, shared core",
     .times = 3},
    {.name = "is throttled, which counts as a delay, too",
     .loads = {LOAD(1, 29, [OBS_LOAD_DELAY] = 0.018, [OBS_LOAD_HERTZ] = 2e9,
                    [OBS_LOAD_THROTTLED] = 0.015),
               WELL, WELL, WELL},
     .rank = 0,
     .text = "compute, throttled",
     .times = 3},
    {.name = "runs at half the frequency",
     .loads = {WELL, WELL, WELL, LOAD(1, 19, [OBS_LOAD_HERTZ] = 1e9)},
     .rank = 3,
     .host = 1,
     .text = "compute, low frequency",
     .times = 2},
    {.name = "all wait for cores, one computes more",
     .loads = {LOAD(1, 9, [OBS_LOAD_DELAY] = 0.008),
               LOAD(1, 9, [OBS_LOAD_DELAY] = 0.008),
               LOAD(1, 19, [OBS_LOAD_DELAY] = 0.008),
               LOAD(1, 9, [OBS_LOAD_DELAY] = 0.008)},
     .rank = 2,
     .host = 1,
     .text = "compute",
     .times = 2},
    {.name = "a host",
     .loads = {WELL, WELL, LOAD(1, 19, [OBS_LOAD_DELAY] = 0.009),
               LOAD(1, 39, [OBS_LOAD_DELAY] = 0.029)},
     .rank = -1,
     .host = 1,
     .text = "compute, shared core",
     .times = 3},
    {.name = "a link",
     .loads = {WELL, WELL, WELL, WELL},
     .links = {1e-5, 2e-5},
     .rank = -1,
     .host = 1,
     .text = "comm",
     .times = 2},
    /* 1e6 bytes take 2 ms longer: less than a fifth of a step. */
    {.name = "a link that explains little",
     .loads = {WELL, WELL, WELL, WELL},
     .links = {1e-5, 1.2001e-5}},
    {.name = "messages of a slow rank",
     .loads = {WELL, WELL, WELL, LOAD(31, 9, [OBS_LOAD_HERTZ] = 2e9)},
     .links = {1e-5, 9e-5},
     .rank = 3,
     .host = 1,
     .text = "data",
     .times = 4},
};

static const row_t *row_named(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    cr_assert_fail("no row %s", name);
    return NULL;
}

static int window(obs_straggler_t *straggler, const row_t *row,
                  obs_slow_t *found)
{
    return obs_straggler_window(
        straggler,
        &(obs_window_t){.loads = row->loads,
                        .links = row->links[0] > 0 ? row->links : NULL,
                        .bytes = 1000},
        found, FOUND);
}

static obs_straggler_t *opened(void)
{
    obs_straggler_t *straggler = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_straggler_open(hosts, RANKS, &straggler, &err), ERR_OK);
    return straggler;
}

Test(straggler, is_named_once_and_with_its_reason)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row_t *row = &rows[i];
        obs_straggler_t *straggler = opened();
        obs_slow_t found[FOUND];

        for (int w = 1; w < OBS_STRAGGLER_WINDOWS; w++)
            cr_expect_eq(window(straggler, row, found), 0, "%s: early",
                         row->name);
        cr_assert_eq(window(straggler, row, found), row->text != NULL, "%s",
                     row->name);
        if (row->text != NULL) {
            cr_expect_eq(found->rank, row->rank, "%s: rank %d", row->name,
                         found->rank);
            cr_expect_eq(found->host, row->host, "%s", row->name);
            cr_expect_str_eq(obs_slow_text(found->cause), row->text, "%s",
                             row->name);
            cr_expect_float_eq(found->seconds / found->median, row->times, 1e-9,
                               "%s: %g times", row->name,
                               found->seconds / found->median);
        }
        cr_expect_eq(window(straggler, row, found), 0, "%s: again", row->name);
        obs_straggler_close(straggler);
    }
}

/* One window without the disturbance: three more are needed. */
Test(straggler, is_named_again_after_it_was_well)
{
    const row_t *well = row_named("all equal"), *slow = row_named("computes");
    const row_t *const order[] = {slow, slow, well, slow, slow,
                                  slow, well, slow, slow, slow};
    const int expected[] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
    obs_straggler_t *straggler = opened();
    obs_slow_t found[FOUND];

    for (size_t w = 0; w < sizeof expected / sizeof *expected; w++)
        cr_expect_eq(window(straggler, order[w], found), expected[w],
                     "window %zu", w);
    obs_straggler_close(straggler);
}

Test(straggler, of_two_ranks_the_slower_one_is_named)
{
    const int two[] = {0, 1};
    const obs_load_t loads[] = {WELL, LOAD(1, 19, [OBS_LOAD_HERTZ] = 2e9)};
    const obs_window_t same = {.loads = loads};
    obs_straggler_t *straggler = NULL;
    obs_slow_t found[FOUND];
    err_t err = ERR_INIT;
    char text[256];

    cr_assert_eq(obs_straggler_open(two, 2, &straggler, &err), ERR_OK);
    obs_straggler_window(straggler, &same, found, FOUND);
    obs_straggler_window(straggler, &same, found, FOUND);
    cr_assert_eq(obs_straggler_window(straggler, &same, found, FOUND), 1);
    obs_slow_format(found, "n2", text, sizeof text);
    cr_expect_str_eq(text,
                     "rank 1 on n2 is slow: compute; 20 ms a step, 2.0 times "
                     "the median");
    found->seconds = 1.0826;
    obs_slow_format(found, "n2", text, sizeof text);
    cr_expect_str_eq(text,
                     "rank 1 on n2 is slow: compute; 1.08 s a step, 108.3 "
                     "times the median");
    obs_straggler_close(straggler);
}

Test(straggler, links_matter_if_most_ranks_wait)
{
    obs_load_t loads[] = {WELL, WELL, WELL, WELL};
    double sorted[RANKS];

    cr_expect(obs_straggler_links_matter(loads, RANKS, sorted));
    for (int r = 0; r < 2; r++)
        loads[r].at[OBS_LOAD_COMM] = 0.001;
    cr_expect_not(obs_straggler_links_matter(loads, RANKS, sorted));
}
