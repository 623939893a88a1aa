/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs on the test device: their checkpoints, losses and evaluations have
 * the bits of the CPU's. A step waits once and allocates nothing.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "dev/dev_far.h"
#include "train/harness.h"

enum { SAMPLES = 118, VALUES_MAX = 64 };

/* Settings of the harness's run file; the last two are the data's fields. */
typedef struct model {
    const char *name, *layers, *input, *target, *loss;
} model_t;

static const model_t dense = {"dense", NULL, NULL, NULL, NULL};

static void settings_of(harness_t *harness, const model_t *model,
                        const char *more, const char *device)
{
    int at = 0;

    if (model->layers != NULL)
        harness->settings[at++] = model->layers;
    if (model->input != NULL)
        harness->settings[at++] = model->input;
    if (model->target != NULL)
        harness->settings[at++] = model->target;
    if (model->loss != NULL)
        harness->settings[at++] = model->loss;
    if (more != NULL)
        harness->settings[at++] = more;
    harness->settings[at++] = device;
    harness->settings[at] = NULL;
}

static void values_compare(const harness_t *a, const harness_t *b,
                           bool evaluations, const char *key)
{
    double x[VALUES_MAX], y[VALUES_MAX];
    const int count = harness_values(a, evaluations, key, x, VALUES_MAX);

    cr_assert_gt(count, 0);
    cr_assert_eq(harness_values(b, evaluations, key, y, VALUES_MAX), count);
    cr_expect_arr_eq(x, y, (size_t)count * sizeof *x, "%s", key);
}

/* Runs of [model] on the CPU and on the test device have the same bits. */
static void check_model(const model_t *model, const char *more)
{
    harness_t cpu, far;
    train_outcome_t out[2];

    harness_open(&cpu, SAMPLES);
    harness_open(&far, SAMPLES);
    settings_of(&cpu, model, more, "train.device=cpu");
    settings_of(&far, model, more, "train.device=far");
    harness_run_ok(&cpu, 1, &out[0]);
    harness_run_ok(&far, 1, &out[1]);
    harness_compare(&cpu, &far, -1, 0, model->name);
    values_compare(&cpu, &far, false, "loss");
    values_compare(&cpu, &far, false, "grad_norm");
    values_compare(&cpu, &far, true, "loss");
    cr_expect_eq(out[0].loss, out[1].loss, "%s", model->name);
    cr_expect_null(dev_far_newest(), "the device is still open");
    harness_close(&far);
    harness_close(&cpu);
}

Test(far, dense)
{
    check_model(&dense, NULL);
}
