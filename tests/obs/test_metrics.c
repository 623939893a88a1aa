/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/metrics.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "lib/facts.h"

static char directory[] = "/tmp/cddp-metrics-XXXXXX";
static char *path;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
    path = str_printf("%s/metrics.jsonl", directory);
}

static void teardown(void)
{
    err_t err = ERR_INIT;

    free(path);
    cr_assert_eq(file_remove_tree(directory, &err), ERR_OK, "%s", err.text);
}

TestSuite(metrics, .init = setup, .fini = teardown);

static obs_metrics_t *open_after(int64_t step)
{
    obs_metrics_t *metrics = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_metrics_open(path, step, &metrics, &err), ERR_OK, "%s",
                 err.text);
    return metrics;
}

static void put_step(obs_metrics_t *metrics, int64_t step, double loss)
{
    obs_step_t row = {.step = step, .epoch = 1, .loss = loss, .step_s = 0.25};

    obs_metrics_step(metrics, &row);
}

static void put_eval(obs_metrics_t *metrics, int64_t step, double accuracy)
{
    obs_eval_t row = {.step = step, .epoch = 1, .accuracy = accuracy};

    obs_metrics_eval(metrics, &row);
}

static void append_raw(const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND);

    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Remove "time" from the row [text], which must have it, in UTC with
 * milliseconds, and compare it with the clock. */
static void time_cut(char *text)
{
    static const char key[] = "\"time\": \"";
    char *at = strstr(text, key), *end;
    struct tm parts = {0};
    double seconds;

    cr_assert_not_null(at, "%s", text);
    end = strptime(at + sizeof key - 1, "%Y-%m-%dT%H:%M:", &parts);
    cr_assert_not_null(end, "%s", text);
    seconds = (double)timegm(&parts) + strtod(end, &end);
    cr_assert_eq(strncmp(end, "Z\", ", 4), 0, "%s", text);
    cr_assert_eq(end[-4], '.', "%s", text);
    cr_assert_leq(fabs(seconds - clock_wall()), 600, "%s", text);
    memmove(at, end + 4, strlen(end + 4) + 1);
}

/* Compare the steps of the file's rows with [expected], such as "1 2 e2 3",
 * where e marks an evaluation. */
static void expect_steps(const char *expected)
{
    char *text, *row, *rest = NULL;
    str_buf_t found = {0};
    err_t err = ERR_INIT;
    json_t *object;

    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    str_buf_add(&found, "%s", "");
    for (row = strtok_r(text, "\n", &rest); row != NULL;
         row = strtok_r(NULL, "\n", &rest)) {
        object = json_loads(row, JSON_REJECT_DUPLICATES, NULL);
        cr_assert_not_null(object, "not JSON: %s", row);
        str_buf_add(&found, "%s%s%d", found.length == 0 ? "" : " ",
                    json_object_get(object, "event") != NULL ? "e" : "",
                    (int)json_integer_value(json_object_get(object, "step")));
        json_decref(object);
    }
    cr_assert_str_eq(found.text, expected);
    str_buf_free(&found);
    free(text);
}

Test(metrics, a_step_row_has_the_documented_keys_in_order)
{
    static const obs_step_t row = {.step = 7,
                                   .epoch = 2,
                                   .samples = 1792,
                                   .loss = 0.1,
                                   .lr = 1e-3,
                                   .step_s = 1.0 / 3,
                                   .data_s = 0,
                                   .forward_s = 0.125,
                                   .backward_s = 0.2,
                                   .comm_s = 1e-7,
                                   .comm_exposed_s = 2e-8,
                                   .comm_bytes = 123456789,
                                   .samples_per_s = 768.123456,
                                   .grad_norm = NAN,
                                   .read_bytes = 3145728,
                                   .decode_s = 0.015625,
                                   .retries = 2,
                                   .data_wait_s = 1e-4};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    char *text;

    obs_metrics_step(metrics, &row);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    time_cut(text);
    cr_assert_str_eq(text,
                     "{\"step\": 7, \"epoch\": 2, \"samples\": 1792, "
                     "\"loss\": 0.1, \"lr\": 0.001, \"step_s\": 0.333333, "
                     "\"data_s\": 0, \"forward_s\": 0.125, "
                     "\"backward_s\": 0.2, \"comm_s\": 1e-07, "
                     "\"comm_exposed_s\": 2e-08, \"comm_bytes\": 123456789, "
                     "\"samples_per_s\": 768.123, "
                     "\"grad_norm\": null, \"read_bytes\": 3145728, "
                     "\"decode_s\": 0.015625, \"retries\": 2, "
                     "\"data_wait_s\": 0.0001}\n");
    free(text);
}

/* A row with all possible values, each of maximum length. */
Test(metrics, every_value_of_a_row_fits)
{
    static obs_value_t values[OBS_VALUES_MAX];
    const obs_step_t row = {
        .step = 1, .loss = 1, .values = values, .value_count = OBS_VALUES_MAX};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    json_t *object;
    char *text;

    for (int i = 0; i < OBS_VALUES_MAX; i++) {
        snprintf(values[i].name, sizeof values[i].name, "%0*d",
                 (int)sizeof values[i].name - 1, i);
        values[i].value = -1.2345678901234567e-100 * (i + 1);
    }
    obs_metrics_step(metrics, &row);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(object, "%s", text);
    for (int i = 0; i < OBS_VALUES_MAX; i++)
        cr_expect_eq(json_real_value(json_object_get(object, values[i].name)),
                     values[i].value);
    json_decref(object);
    free(text);
}

/* An object of any length is copied as it is. */
Test(metrics, an_event_with_an_object)
{
    obs_metrics_t *metrics = open_after(0);
    const obs_value_t value = {"steps", 3};
    str_buf_t object = {0};
    err_t err = ERR_INIT;
    char *text, *expected;

    str_buf_add(&object, "{\"list\": [0");
    for (int i = 1; i < 20000; i++)
        str_buf_add(&object, ",%d", i);
    str_buf_add(&object, "]}");
    obs_metrics_event(metrics, &(obs_event_t){.name = "ranks",
                                              .step = 7,
                                              .values = &value,
                                              .value_count = 1,
                                              .object_name = "ranks",
                                              .object = object.text});
    put_step(metrics, 8, 1);
    obs_metrics_close(metrics);
    expect_steps("e7 8");
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    *(strchr(text, '\n') + 1) = '\0';
    time_cut(text);
    expected = str_printf("{\"event\": \"ranks\", \"step\": 7, \"epoch\": 0, "
                          "\"steps\": 3, \"ranks\": %s}\n",
                          object.text);
    cr_expect_str_eq(text, expected);
    free(expected);
    free(text);
    str_buf_free(&object);
}

Test(metrics, an_eval_row_has_the_documented_keys)
{
    static const obs_value_t values[] = {{"top5", 0.75}, {"r2", NAN}};
    static const obs_eval_t row = {.step = 30,
                                   .epoch = 3,
                                   .loss = 0.5,
                                   .accuracy = NAN,
                                   .values = values,
                                   .value_count = 2};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    char *text;

    obs_metrics_eval(metrics, &row);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    time_cut(text);
    cr_assert_str_eq(text, "{\"event\": \"eval\", \"step\": 30, \"epoch\": 3, "
                           "\"loss\": 0.5, \"accuracy\": null, \"top5\": 0.75, "
                           "\"r2\": null}\n");
    free(text);
}

Test(metrics, other_events_are_rows_that_a_resume_trims_by_their_step)
{
    static const obs_value_t values[] = {{"seconds", 0.5}, {"bytes", 4096}};
    const obs_event_t saved = {.name = "checkpoint",
                               .step = 2,
                               .epoch = 1,
                               .values = values,
                               .value_count = 2};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    char *text;

    obs_metrics_event(metrics, &saved);
    put_eval(metrics, 2, 0.5);
    put_step(metrics, 3, 1);
    obs_metrics_close(metrics);
    expect_steps("e2 e2 3");
    obs_metrics_close(open_after(2));
    expect_steps("e2 e2");
    obs_metrics_close(open_after(1));
    expect_steps("");
    metrics = open_after(0);
    obs_metrics_event(metrics, &saved);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    time_cut(text);
    cr_assert_str_eq(text, "{\"event\": \"checkpoint\", \"step\": 2, "
                           "\"epoch\": 1, \"seconds\": 0.5, "
                           "\"bytes\": 4096}\n");
    free(text);
}

Test(metrics, losses_read_back_to_the_same_bits)
{
    const double losses[] = {1.0 / 3, 0.1, 1e-300, 123456789.123456789, 2.5};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    char *text, *row, *rest = NULL;
    json_t *object;
    size_t i;

    for (i = 0; i < 5; i++)
        put_step(metrics, (int64_t)i + 1, losses[i]);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    for (i = 0, row = strtok_r(text, "\n", &rest); i < 5;
         i++, row = strtok_r(NULL, "\n", &rest)) {
        object = json_loads(row, 0, NULL);
        cr_assert_eq(json_number_value(json_object_get(object, "loss")),
                     losses[i]);
        json_decref(object);
    }
    free(text);
}

Test(metrics, every_row_fits_its_line)
{
    const double long_one = -1.2345678901234567e-300;
    obs_step_t row = {INT64_MIN, INT64_MIN, INT64_MIN, long_one, long_one,
                      long_one,  long_one,  long_one,  long_one, long_one,
                      long_one,  long_one,  long_one,  long_one, long_one,
                      long_one,  long_one,  long_one,  NULL,     0};
    obs_metrics_t *metrics = open_after(0);
    err_t err = ERR_INIT;
    json_t *object;
    char *text;

    obs_metrics_step(metrics, &row);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    object = json_loads(text, 0, NULL);
    cr_assert_not_null(object);
    cr_assert_eq(json_object_size(object), 19);
    json_decref(object);
    free(text);
}

Test(metrics, a_resumed_run_has_each_step_once)
{
    obs_metrics_t *metrics = open_after(0);
    int64_t step;

    for (step = 1; step <= 5; step++) {
        put_step(metrics, step, 1);
        if (step % 2 == 0)
            put_eval(metrics, step, 0.5);
    }
    obs_metrics_close(metrics);
    expect_steps("1 2 e2 3 4 e4 5");
    metrics = open_after(3);
    expect_steps("1 2 e2 3");
    put_step(metrics, 4, 1);
    put_eval(metrics, 4, 0.5);
    obs_metrics_close(metrics);
    expect_steps("1 2 e2 3 4 e4");
}

Test(metrics, an_evaluation_before_the_checkpoint_is_not_repeated)
{
    obs_metrics_t *metrics = open_after(0);

    put_step(metrics, 1, 1);
    put_eval(metrics, 1, 0.5);
    obs_metrics_close(metrics);
    metrics = open_after(1);
    put_eval(metrics, 1, 0.5);
    put_step(metrics, 2, 1);
    put_eval(metrics, 2, 0.5);
    obs_metrics_close(metrics);
    expect_steps("1 e1 2 e2");
}

Test(metrics, a_torn_or_foreign_line_goes)
{
    obs_metrics_t *metrics = open_after(0);

    put_step(metrics, 1, 1);
    obs_metrics_close(metrics);
    append_raw("garbage\n\n{\"step\": 2, \"epoch\": 1, \"loss\"");
    metrics = open_after(1);
    expect_steps("1");
    put_step(metrics, 2, 1);
    obs_metrics_close(metrics);
    expect_steps("1 2");
}

Test(metrics, a_new_run_starts_an_empty_file)
{
    obs_metrics_t *metrics = open_after(0);

    put_step(metrics, 1, 1);
    obs_metrics_close(metrics);
    metrics = open_after(0);
    expect_steps("");
    obs_metrics_close(metrics);
}

Test(metrics, a_file_that_cannot_be_written_is_named)
{
    obs_metrics_t *metrics = NULL;
    err_t err = ERR_INIT;

    free(path);
    path = str_printf("%s/none/metrics.jsonl", directory);
    cr_assert_eq(obs_metrics_open(path, 0, &metrics, &err), ERR_IO);
    FACTS(err.text, path, "No such file or directory");
    cr_assert_null(metrics);
}

/* A full disk is reported once, on standard error, and the run goes on. */
Test(metrics, a_full_disk_is_told_once)
{
    obs_metrics_t *metrics = NULL;
    char *told, *log = str_printf("%s/stderr", directory);
    int old = dup(STDERR_FILENO), fd = creat(log, 0600);
    int full = open("/dev/full", O_WRONLY), next = dup(full);
    err_t err = ERR_INIT;
    char *expected;

    /* obs_metrics_open refuses devices, so its descriptor is redirected to one
     * afterwards. */
    close(next);
    cr_assert_eq(obs_metrics_open(path, 0, &metrics, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(dup2(full, next), next);
    close(full);
    dup2(fd, STDERR_FILENO);
    put_step(metrics, 1, 1);
    put_step(metrics, 2, 1);
    dup2(old, STDERR_FILENO);
    close(old);
    close(fd);
    obs_metrics_close(metrics);
    cr_assert_eq(file_read(log, &told, NULL, &err), ERR_OK);
    expected = str_printf("obs: warn: cannot write %s: No space left on "
                          "device; rows that do not fit are left out\n",
                          path);
    cr_assert_not_null(strstr(told, expected), "%s", told);
    cr_assert_eq(strchr(told, '\n'), strrchr(told, '\n'));
    free(expected);
    free(told);
    free(log);
}

/* global, because fstat below is called by the library */
static bool stat_fails;

int fstat(int fd, struct stat *out)
{
    if (!stat_fails)
        return fstatat(fd, "", out, AT_EMPTY_PATH);
    errno = EIO;
    return -1;
}

/* Write four rows to a disk that has no space for the second and third. If
 * [unseen], fstat fails during the second, so that its offset is unknown. */
static void put_beyond(bool unseen)
{
    obs_metrics_t *metrics = open_after(0);
    struct rlimit old, tight;
    struct stat st;

    put_step(metrics, 1, 1);
    cr_assert_eq(stat(path, &st), 0);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)st.st_size + 40;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    stat_fails = unseen;
    put_step(metrics, 2, 1);
    stat_fails = false;
    put_step(metrics, 3, 1);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    put_step(metrics, 4, 1);
    obs_metrics_close(metrics);
    expect_steps("1 4");
}

/* The disk becomes full in the middle of a row, and has space again later. */
Test(metrics, a_row_that_did_not_fit_leaves_no_half)
{
    put_beyond(false);
}

/* The offset of the row is unknown, so the half that was written cannot be
 * removed. */
Test(metrics, a_row_without_a_known_place_takes_no_others_with_it)
{
    put_beyond(true);
}

Test(metrics, a_file_that_was_removed_is_told_once)
{
    obs_metrics_t *metrics = open_after(0);
    char text[2048] = "";
    int old = dup(STDERR_FILENO), ends[2];
    const char *at;

    put_step(metrics, 1, 0.5);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    put_step(metrics, 2, 0.5);
    put_step(metrics, 3, 0.5);
    put_eval(metrics, 3, 0.5);
    dup2(old, STDERR_FILENO);
    close(ends[1]);
    cr_assert_gt(read(ends[0], text, sizeof text - 1), 0, "nothing was said");
    at = strstr(text, "metrics.jsonl was removed");
    cr_assert_not_null(at, "%s", text);
    cr_assert_null(strstr(at + 1, "metrics.jsonl was removed"), "%s", text);
    obs_metrics_close(metrics);
}
