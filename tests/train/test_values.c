/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/values.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hdf5io/open.h"
#include "harness.h"

/* Three shards, so that parts of ranks begin within shards. */
#define SHARDS 3
#define ROWS 50
#define SAMPLES (SHARDS * ROWS)

static char *shards_make(void)
{
    char *directory = files_make();

    for (int s = 0; s < SHARDS; s++) {
        char name[32];

        snprintf(name, sizeof name, "part-%d.h5", s);
        open_write(directory, name, FILES_CONTIGUOUS, (int64_t)s * ROWS, ROWS);
    }
    return directory;
}

static void poke(const char *directory, const char *name, const char *field,
                 int64_t at, double value)
{
    char *path = files_path(directory, name);

    files_poke(path, field, at, value);
    free(path);
}

static void count_call(void *context)
{
    ++*(int *)context;
}

/* Check the data as [size] ranks. Returns how many of them found something; the
 * last of them sets *found and [err]. */
static int check_all(const char *directory, int size, bool inputs, int *found,
                     err_t *err)
{
    open_setup_t setup;
    int64_t bytes = 0;
    int failed = 0, calls = 0;

    open_setup(&setup, directory, "part-*.h5");
    setup.input.path = (char *)"/temperature";
    setup.config.inputs[0].elems = 2;
    for (int r = 0; r < size; r++) {
        const train_values_t values = {.what = "data.train",
                                       .rank = r,
                                       .size = size,
                                       .inputs = inputs,
                                       .alive = count_call,
                                       .context = &calls};
        hdf5io_dataset_t *dataset = open_dataset(&setup);
        err_t own = ERR_INIT;

        if (train_values_check(&values, dataset, &own) != ERR_OK) {
            cr_assert_eq(own.code, ERR_DATA, "%s", own.text);
            *found = r;
            *err = own;
            failed++;
        }
        bytes += hdf5io_dataset_bytes_read(dataset);
        hdf5io_dataset_close(dataset);
    }
    if (failed == 0) /* each number once */
        cr_assert_eq(bytes, SAMPLES * (8 + (inputs ? 16 : 0)));
    cr_assert(calls > 0);
    open_setup_free(&setup);
    return failed;
}

Test(values, good_data_is_read_once)
{
    char *directory = shards_make();
    err_t err = ERR_INIT;
    int found;

    for (int size = 1; size <= 17; size++)
        for (int inputs = 0; inputs < 2; inputs++)
            cr_assert_eq(check_all(directory, size, inputs, &found, &err), 0,
                         "%s", err.text);
    files_remove(directory);
}

Test(values, a_label_out_of_range_is_found_in_one_part)
{
    char *directory = shards_make();
    err_t err = ERR_INIT;
    int found = -1;

    poke(directory, "part-1.h5", "/phase", 33, 3);
    for (int size = 1; size <= 17; size++) {
        cr_assert_eq(check_all(directory, size, false, &found, &err), 1);
        cr_assert_leq(SAMPLES * found / size, ROWS + 33);
        cr_assert_gt(SAMPLES * (found + 1) / size, ROWS + 33);
        cr_assert_not_null(strstr(err.text, "part-1.h5: row 33 of /phase holds "
                                            "label 3: expected"),
                           "%s", err.text);
    }
    files_remove(directory);
}

Test(values, nan_in_an_input_is_found_if_inputs_are_checked)
{
    char *directory = shards_make();
    err_t err = ERR_INIT;
    int found = -1;

    poke(directory, "part-2.h5", "/temperature", 2 * 49 + 1, (double)NAN);
    cr_assert_eq(check_all(directory, 2, false, &found, &err), 0);
    cr_assert_eq(check_all(directory, 2, true, &found, &err), 1);
    cr_assert_eq(found, 1);
    cr_assert_not_null(strstr(err.text, "input holds nan in row 49 of "), "%s",
                       err.text);
    cr_assert_not_null(strstr(err.text, "part-2.h5:/temperature"), "%s",
                       err.text);
    files_remove(directory);
}

/* The run ends at the bad label in any case: before its first step, or in the
 * step that uses it. */
static void run_expect(const char *validate, bool before)
{
    harness_t harness;
    train_outcome_t out;
    char *metrics;
    err_t err = ERR_INIT;

    harness_open(&harness, 4096);
    harness.settings[0] = validate;
    harness.settings[1] = "data.shuffle=none";
    harness_label_set(&harness, 4000, 9);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DATA, "%s",
                 err.text);
    cr_assert_not_null(strstr(err.text, "row 4000 of /y holds label 9"), "%s",
                       err.text);
    metrics = files_path(harness.dir, "run/metrics.jsonl");
    cr_assert_eq(access(metrics, F_OK) != 0, before, "%s", validate);
    free(metrics);
    harness_close(&harness);
}

Test(values, a_run_looks_before_its_first_step)
{
    run_expect("data.validate=quick", false);
    run_expect("data.validate=labels", true);
    run_expect("data.validate=full", true);
}
