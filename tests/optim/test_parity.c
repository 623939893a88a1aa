/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Twenty steps of every optimizer with every schedule compared with PyTorch,
 * whose results tests/python/make_optim_reference.py recorded in
 * tests/data/optim.json: the rate of each step, and the parameters (and their
 * average) after the last, to 1e-5 of the tensor's largest element. The
 * problem is linear least squares, with gradients in float64.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "conf/conf.h"
#include "optim/optim_rig.h"

#define TOLERANCE 1e-5

enum { SAMPLES = 8, WIDTH = 3, OUT = 4 };
/* In the order of nn: last first, aligned. */
enum { BIAS = 0, WEIGHT = 16, ELEMS = 32 };

static const optim_view_t views[] = {
    {.name = "linear1.bias", .offset = BIAS, .count = OUT, .ndim = 1},
    {.name = "linear1.weight",
     .offset = WEIGHT,
     .count = (size_t)WIDTH * OUT,
     .ndim = 2}};

typedef struct parity {
    const json_t *root, *json; /* the whole file, and the case */
    optim_t *optim;
    optim_schedule_t *schedule;
    double clip_norm, clip_value;
    optim_watch_t watch;
    float params[ELEMS], grads[ELEMS];
} parity_t;

static double number(const json_t *list, int i)
{
    return json_number_value(json_array_get(list, (size_t)i));
}

static double cell(const parity_t *p, const char *key, int row, int column)
{
    return number(json_array_get(json_object_get(p->root, key), (size_t)row),
                  column);
}

/* Compute the gradient of sum (W x + b - y)^2 / (2 SAMPLES). */
static void gradient(parity_t *p)
{
    for (int o = 0; o < OUT; o++) {
        double bias = 0, weight[WIDTH] = {0};

        for (int s = 0; s < SAMPLES; s++) {
            double miss = (double)p->params[BIAS + o] - cell(p, "y", s, o);

            for (int i = 0; i < WIDTH; i++)
                miss += (double)p->params[WEIGHT + o * WIDTH + i] *
                        cell(p, "x", s, i);
            bias += miss / SAMPLES;
            for (int i = 0; i < WIDTH; i++)
                weight[i] += miss * cell(p, "x", s, i) / SAMPLES;
        }
        p->grads[BIAS + o] = (float)bias;
        for (int i = 0; i < WIDTH; i++)
            p->grads[WEIGHT + o * WIDTH + i] = (float)weight[i];
    }
}

static double real_of(const tree_t *run, const char *section, const char *key)
{
    const tree_t *map = tree_get(run, section), *value = NULL;
    double real = 0;

    if (map != NULL)
        value = tree_get(map, key);
    if (value != NULL)
        cr_assert(str_to_real(tree_text(value), &real));
    return real;
}

static void parity_open(parity_t *p, const json_t *root, const json_t *json)
{
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = 2,
                                   .elems = ELEMS};
    const optim_span_t span = {
        .steps = json_integer_value(json_object_get(root, "steps")),
        .epoch_steps =
            json_integer_value(json_object_get(root, "epoch_steps"))};
    const char *text = json_string_value(json_object_get(json, "run"));
    tree_t *run = NULL;
    optim_ema_t ema;
    err_t err = ERR_INIT;

    *p = (parity_t){.root = root, .json = json};
    cr_assert_eq(conf_parse("run", text, &run, &err), ERR_OK, "%s", err.text);
    ema = (optim_ema_t){.decay = real_of(run, "ema", "decay")};
    p->clip_norm = real_of(run, "train", "clip_norm");
    p->clip_value = real_of(run, "train", "clip_value");
    cr_assert_eq(
        optim_open(tree_get(run, "optimizer"), &ema, &layout, &p->optim, &err),
        ERR_OK, "%s: %s", text, err.text);
    cr_assert_eq(optim_schedule_open(tree_get(run, "schedule"), &span,
                                     &p->schedule, &err),
                 ERR_OK, "%s: %s", text, err.text);
    tree_free(run);
    for (int i = 0; i < OUT; i++)
        p->params[BIAS + i] = (float)number(json_object_get(root, "bias"), i);
    for (int i = 0; i < OUT * WIDTH; i++)
        p->params[WEIGHT + i] =
            (float)number(json_object_get(root, "weight"), i);
    optim_rig_start(p->optim, p->params);
}

static void parity_step(parity_t *p, int step)
{
    double lr = optim_schedule_lr(p->schedule, optim_lr(p->optim), step);
    double recorded = number(json_object_get(p->json, "lr"), step);
    const json_t *metrics = json_object_get(p->json, "metrics");

    lr = optim_schedule_cut(p->schedule, &p->watch, lr);
    cr_expect(fabs(lr - recorded) <= 1e-8 * recorded + 1e-15,
              "%s: rate %.9g of step %d, PyTorch has %.9g",
              json_string_value(json_object_get(p->json, "name")), lr, step,
              recorded);
    gradient(p);
    optim_rig_clip(p->grads, ELEMS, p->clip_norm, p->clip_value, 1);
    optim_rig_step(p->optim, p->params, p->grads, lr, step + 1);
    if (metrics != NULL)
        optim_schedule_watch(p->schedule,
                             json_is_null(json_array_get(metrics, (size_t)step))
                                 ? (double)NAN
                                 : number(metrics, step),
                             &p->watch);
}

static void expect_tensor(const parity_t *p, const char *key,
                          const float *found)
{
    const json_t *recorded = json_object_get(p->json, key);
    double largest = 0, off = 0;

    for (int i = 0; i < (int)json_array_size(recorded); i++) {
        largest = fmax(largest, fabs(number(recorded, i)));
        off = fmax(off, fabs((double)found[i] - number(recorded, i)));
    }
    cr_expect_gt(largest, 0);
    cr_expect(off <= TOLERANCE * largest, "%s: %s is off by %.1e of %.3g",
              json_string_value(json_object_get(p->json, "name")), key, off,
              largest);
}

static void check_case(const json_t *root, const json_t *json)
{
    parity_t p;
    const float *average;

    parity_open(&p, root, json);
    cr_assert_eq(json_array_size(json_object_get(json, "lr")), 20);
    for (int step = 0; step < 20; step++)
        parity_step(&p, step);
    expect_tensor(&p, "weight", p.params + WEIGHT);
    expect_tensor(&p, "bias", p.params + BIAS);
    average = optim_average(p.optim);
    cr_expect_eq(average != NULL, json_object_get(json, "ema_weight") != NULL);
    if (average != NULL) {
        expect_tensor(&p, "ema_weight", average + WEIGHT);
        expect_tensor(&p, "ema_bias", average + BIAS);
    }
    optim_schedule_close(p.schedule);
    optim_close(p.optim);
}

Test(parity, twenty_steps_of_everything_are_pytorchs)
{
    const char *source = getenv("srcdir");
    char *path =
        str_printf("%s/tests/data/optim.json", source != NULL ? source : ".");
    const json_t *cases, *json;
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    size_t index;

    cr_assert_not_null(root, "%s: %s", path, error.text);
    cases = json_object_get(root, "cases");
    cr_assert_gt(json_array_size(cases), 100);
    json_array_foreach(cases, index, json) check_case(root, json);
    json_decref(root);
    free(path);
}
