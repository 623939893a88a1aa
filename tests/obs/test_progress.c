/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/progress.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/halted.h"

static const obs_epoch_t some = {.epoch = 3,
                                 .epochs = 5,
                                 .step = 235,
                                 .loss = 0.0612,
                                 .valid_loss = 0.0588,
                                 .accuracy = 0.979,
                                 .seconds = 12.34};

Test(progress, an_epoch_is_one_line)
{
    char line[256];

    cr_assert_str_eq(obs_epoch_format(&some, line, sizeof line),
                     "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588  "
                     "accuracy 97.90 %  12.3 s");
    {
        const obs_value_t values[] = {{"top5", 0.75}, {"bits", 2.34567}};
        obs_epoch_t epoch = some;

        epoch.values = values;
        epoch.value_count = 2;
        cr_assert_str_eq(obs_epoch_format(&epoch, line, sizeof line),
                         "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588  "
                         "accuracy 97.90 %  top5 0.75  bits 2.346  12.3 s");
    }
    obs_epoch_format(&some, line, 10);
    cr_assert_str_eq(line, "epoch 3/5");
}

Test(progress, what_was_not_measured_is_left_out)
{
    obs_epoch_t epoch = some;
    char line[256];

    epoch.accuracy = NAN;
    cr_assert_str_eq(obs_epoch_format(&epoch, line, sizeof line),
                     "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588  "
                     "12.3 s");
    epoch.valid_loss = NAN;
    cr_assert_str_eq(obs_epoch_format(&epoch, line, sizeof line),
                     "epoch 3/5  step 235  loss 0.0612  12.3 s");
}

static obs_progress_t *opened(double now)
{
    obs_progress_t *progress = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_progress_open(60, now, &progress, &err), ERR_OK, "%s",
                 err.text);
    return progress;
}

Test(progress, an_epoch_goes_to_standard_output, .init = cr_redirect_stdout)
{
    obs_progress_t *progress = opened(1);

    obs_progress_epoch(NULL, &some, 1);
    obs_progress_epoch(progress, &some, 1);
    obs_progress_close(progress);
    cr_assert_stdout_eq_str("epoch 3/5  step 235  loss 0.0612  valid loss "
                            "0.0588  accuracy 97.90 %  12.3 s\n");
}

Test(progress, a_line_that_nobody_takes_is_lost, .timeout = 20)
{
    obs_progress_t *progress = opened(1);
    char page[4096] = {0};
    int ends[2];

    halted_open(ends);
    dup2(ends[1], STDOUT_FILENO);
    obs_progress_epoch(progress, &some, 1);
    cr_assert_eq(read(ends[0], page, sizeof page), (ssize_t)sizeof page);
    obs_progress_epoch(progress, &some, 1);
    obs_progress_close(progress);
    for (size_t got = sizeof page; got == sizeof page;)
        got = (size_t)read(ends[0], page, sizeof page);
    cr_assert(strncmp(page, "epoch 3/5", 9) == 0);
    cr_assert_eq(strchr(page, '\n')[1], '\0', "one line, not two");
}

/* The reader reads one page and stops again. The line still ends with a
 * newline; values that do not fit are left out. */
Test(progress, a_line_of_many_values_stops_nobody, .timeout = 20)
{
    obs_progress_t *progress = opened(1);
    obs_value_t values[OBS_VALUES_MAX];
    obs_epoch_t epoch = some;
    char page[4096];
    int ends[2];
    size_t got;

    for (int i = 0; i < OBS_VALUES_MAX; i++) {
        snprintf(values[i].name, sizeof values[i].name,
                 "a_loss_with_a_name_as_long_as_names_may_be_%03d", i);
        values[i].value = 1.25;
    }
    epoch.values = values;
    epoch.value_count = OBS_VALUES_MAX;
    halted_open(ends);
    dup2(ends[1], STDOUT_FILENO);
    cr_assert_eq(read(ends[0], page, sizeof page), (ssize_t)sizeof page);
    obs_progress_epoch(progress, &epoch, 1);
    obs_progress_close(progress);
    do
        got = (size_t)read(ends[0], page, sizeof page);
    while (page[0] == '\0');
    cr_assert_eq(page[got - 1], '\n');
    page[got - 1] = '\0';
    cr_expect_not_null(strstr(page, "_000 1.25  a_loss"), "%s", page);
    cr_expect_not_null(strstr(page, " 1.25  ...  12.3 s"), "%s", page);
}

/* ---- where the run is, on a simulated clock ------------------------------ */

static const obs_place_t place = {.epoch = 1,
                                  .epochs = 2,
                                  .epoch_steps = 1000,
                                  .left = INFINITY,
                                  .saved = NAN};

/* Make steps of [pace] seconds and [samples] samples until [end]; a quarter of
 * each step waits for communication. */
static void steps_make(obs_progress_t *progress, obs_place_t *at, double *now,
                       double end, double pace)
{
    for (; *now < end; *now += pace) {
        at->step++;
        at->epoch_step++;
        at->samples += 8;
        at->exposed_s += pace / 4;
        at->loss = 0.25;
        if (obs_progress_due(progress, *now))
            obs_progress_step(progress, at, *now);
    }
}

Test(progress, a_run_prints_after_10_s_and_then_every_minute,
     .init = cr_redirect_stdout)
{
    obs_progress_t *progress = opened(100);
    obs_place_t at = place;
    double now = 100;

    cr_assert_not(obs_progress_due(NULL, now));
    at.left = 3600;
    at.saved = 40;
    steps_make(progress, &at, &now, 179, 1);
    obs_progress_close(progress);
    cr_assert_stdout_eq_str(
        "step 11 of 2000  epoch 1/2, 1 %  loss 0.25  ETA 33 min  8 samples/s  "
        "comm 25 %  60 min left  saved 70 s ago\n"
        "step 71 of 2000  epoch 1/2, 7 %  loss 0.25  ETA 32 min  8 samples/s  "
        "comm 25 %  60 min left  saved 2 min ago\n");
}

Test(progress, speeds_have_no_exponent)
{
    static const struct {
        double speed;
        const char *text;
    } rows[] = {{0, "0"},
                {0.01234567, "0.01235"},
                {8, "8"},
                {999.96, "1000"},
                {1234.5678, "1235"},
                {51470.2, "51470"},
                {1.2345678e9, "1234567800"}};
    char text[32];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_str_eq(obs_speed_format(rows[i].speed, text, sizeof text),
                         rows[i].text, "%g: %s", rows[i].speed, text);
}

Test(progress, an_event_is_a_line, .init = cr_redirect_stdout)
{
    obs_progress_t *progress = opened(1);

    obs_progress_say(NULL, 1, "nothing");
    obs_progress_say(progress, 1, "saved step %d  %.1f s", 7, 0.5);
    obs_progress_text(progress, "one\ntwo\n");
    obs_progress_close(progress);
    cr_assert_stdout_eq_str("saved step 7  0.5 s\none\ntwo\n");
}

/* Print a week of lines, with an event every [pause] seconds; returns their
 * bytes. */
static long week_print(double pause)
{
    char name[] = "/tmp/cddp-progress-XXXXXX";
    const int file = mkstemp(name);
    obs_progress_t *progress;
    obs_place_t at = place;
    double now = 1000;
    long bytes;

    cr_assert_geq(file, 0);
    cr_assert_eq(unlink(name), 0);
    cr_assert_geq(dup2(file, STDOUT_FILENO), 0);
    progress = opened(now);
    at.epochs = 1000;
    at.left = 1e6;
    at.saved = now;
    while (now < 1000 + 7 * 86400.0) {
        steps_make(progress, &at, &now, now + pause, 20);
        obs_progress_say(progress, now,
                         "saved a checkpoint of step %lld  12.5 GiB  10.00 s",
                         (long long)at.step);
    }
    obs_progress_close(progress);
    bytes = (long)lseek(STDOUT_FILENO, 0, SEEK_END);
    close(file);
    return bytes;
}

Test(progress, a_week_is_at_most_2_mb)
{
    const long bytes = week_print(600);

    /* 10,080 lines of progress and 1,008 of checkpoints */
    cr_assert_gt(bytes, 1200000, "%ld", bytes);
    cr_assert_leq(bytes, 2000000, "%ld", bytes);
}

Test(progress, lines_beyond_2_mb_a_week_are_left_out)
{
    const long bytes = week_print(20);
    char start[1 << 20] = {0};
    const char *said;

    cr_assert_gt(bytes, 1900000, "%ld", bytes);
    cr_assert_leq(bytes, 2000000, "%ld", bytes);
    cr_assert_eq(pread(STDOUT_FILENO, start, sizeof start - 1, 0),
                 (ssize_t)sizeof start - 1);
    said = strstr(start, "lines are left out from here on");
    cr_assert_not_null(said);
    cr_assert_null(strstr(said + 1, "lines are left out"));
}
