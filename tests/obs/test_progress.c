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

Test(progress, an_epoch_goes_to_standard_output, .init = cr_redirect_stdout)
{
    obs_progress_epoch(&some);
    cr_assert_stdout_eq_str("epoch 3/5  step 235  loss 0.0612  valid loss "
                            "0.0588  accuracy 97.90 %  12.3 s\n");
}

Test(progress, a_line_that_nobody_takes_is_lost, .timeout = 20)
{
    char page[4096] = {0};
    int ends[2];

    halted_open(ends);
    dup2(ends[1], STDOUT_FILENO);
    obs_progress_epoch(&some);
    cr_assert_eq(read(ends[0], page, sizeof page), (ssize_t)sizeof page);
    obs_progress_epoch(&some);
    for (size_t got = sizeof page; got == sizeof page;)
        got = (size_t)read(ends[0], page, sizeof page);
    cr_assert(strncmp(page, "epoch 3/5", 9) == 0);
    cr_assert_eq(strchr(page, '\n')[1], '\0', "one line, not two");
}

/* The reader reads one page and stops again. The line still ends with a
 * newline; values that do not fit are left out. */
Test(progress, a_line_of_many_values_stops_nobody, .timeout = 20)
{
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
    obs_progress_epoch(&epoch);
    do
        got = (size_t)read(ends[0], page, sizeof page);
    while (page[0] == '\0');
    cr_assert_eq(page[got - 1], '\n');
    page[got - 1] = '\0';
    cr_expect_not_null(strstr(page, "_000 1.25  a_loss"), "%s", page);
    cr_expect_not_null(strstr(page, " 1.25  ...  12.3 s"), "%s", page);
}
