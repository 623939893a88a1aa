/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What rows of metrics.jsonl tell of the reads of a run. */
#include <criterion/criterion.h>

#include "train/harness.h"

/* Two steps an epoch. */
enum { SAMPLES = 48, ROWS = 3, SAMPLE_BYTES = 12 * 4 + 4 };

static void values(const harness_t *harness, const char *key, double out[ROWS])
{
    cr_assert_eq(harness_values(harness, false, key, out, ROWS), ROWS, "%s",
                 key);
}

/* Without a thread that reads ahead, the bytes belong to the steps; a row
 * counts the steps without a row before it, too. Evaluations do not count. */
Test(reads, rows_count_what_was_read_since_the_row_before)
{
    double bytes[ROWS], waited[ROWS], data[ROWS], decoding[ROWS], retries[ROWS];
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "train.log_every=2";
    harness.settings[1] = "data.prefetch=0";
    harness.settings[2] = "data.memory=1"; /* short rows are read again, too */
    harness_run_ok(&harness, 1, &out);
    values(&harness, "read_bytes", bytes);
    values(&harness, "data_wait_s", waited);
    values(&harness, "data_s", data);
    values(&harness, "decode_s", decoding);
    values(&harness, "retries", retries);
    for (int i = 0; i < ROWS; i++) {
        cr_expect_eq(bytes[i], SAMPLES * SAMPLE_BYTES, "row %d: %g", i,
                     bytes[i]);
        cr_expect_gt(waited[i], data[i]);
        cr_expect_eq(decoding[i], 0);
        cr_expect_eq(retries[i], 0);
    }
    harness_close(&harness);
}

Test(reads, rows_have_the_time_of_decoding)
{
    double decoding[2 * ROWS], sum = 0;
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_chunks_add(&harness, "/c", 16, false);
    harness.settings[0] = "data.input={path: /c}";
    harness.settings[1] = "data.memory=1";
    harness_run_ok(&harness, 1, &out);
    cr_assert_eq(
        harness_values(&harness, false, "decode_s", decoding, 2 * ROWS),
        2 * ROWS);
    for (int i = 0; i < 2 * ROWS; i++)
        sum += decoding[i];
    cr_expect_gt(sum, 0);
    harness_close(&harness);
}

/* Losses of all steps with this number of threads that read ahead. */
static void losses_of(const char *threads, double out[2 * ROWS])
{
    train_outcome_t out_of_run;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    harness_chunks_add(&harness, "/c", 16, false);
    harness.settings[0] = "data.input={path: /c}";
    harness.settings[1] = "data.prefetch=5";
    harness.settings[2] = threads;
    harness_run_ok(&harness, 2, &out_of_run);
    cr_assert_eq(harness_values(&harness, false, "loss", out, 2 * ROWS),
                 2 * ROWS);
    harness_close(&harness);
}

Test(reads, no_bit_depends_on_the_number_of_threads)
{
    double one[2 * ROWS], four[2 * ROWS];

    losses_of("data.threads=1", one);
    losses_of("data.threads=4", four);
    for (int i = 0; i < 2 * ROWS; i++)
        cr_expect_eq(one[i], four[i], "row %d: %a and %a", i, one[i], four[i]);
}
