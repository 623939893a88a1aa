/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The moving average of the parameters. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "optim/optim_rig.h"

/* elements; more than one piece of the update */
#define ELEMS ((size_t)40000)

static optim_t *open_yaml(const char *yaml, double decay)
{
    const optim_view_t views[] = {
        {.name = "a.bias", .offset = 0, .count = 3, .ndim = 1},
        {.name = "a.weight", .offset = 16, .count = ELEMS - 16, .ndim = 2}};
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = 2,
                                   .elems = ELEMS};
    const optim_ema_t ema = {.decay = decay};
    optim_t *optim = NULL;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("o.yaml", yaml, &tree, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(
        optim_open(tree_get(tree, "optimizer"), &ema, &layout, &optim, &err),
        ERR_OK, "%s", err.text);
    tree_free(tree);
    return optim;
}

static void fill(float *p, float *g)
{
    for (size_t i = 0; i < ELEMS; i++) {
        bool gap = i >= 3 && i < 16;

        p[i] = gap ? 0 : (float)(i % 17);
        g[i] = gap ? 0 : (float)(i % 5) - 2;
    }
}

Test(ema, none_by_default)
{
    optim_t *optim = open_yaml("optimizer: sgd", 0);

    cr_expect_null(optim_average(optim));
    cr_expect_eq(optim_slots(optim), 0);
    optim_close(optim);
}

Test(ema, is_the_last_slot)
{
    optim_t *optim = open_yaml("optimizer: adamw", 0.9);

    cr_assert_eq(optim_slots(optim), 3);
    cr_expect_str_eq(optim_slot_name(optim, 2), "ema");
    cr_expect_eq(optim_slot_data(optim, 2), optim_average(optim));
    optim_close(optim);
}

/* As torch.optim.swa_utils.AveragedModel: first a copy of the parameters after
 * the first update, then decay * average + (1 - decay) * parameters. */
Test(ema, follows_the_parameters)
{
    static const char *const all[] = {"optimizer: {sgd: {lr: 0.5}}",
                                      "optimizer: {lamb: {lr: 0.5}}"};
    float *p = malloc(ELEMS * sizeof *p), *g = malloc(ELEMS * sizeof *g);
    double *expected = malloc(ELEMS * sizeof *expected);

    for (int k = 0; k < 2; k++) {
        optim_t *optim = open_yaml(all[k], 0.75);

        fill(p, g);
        optim_rig_start(optim, p);
        cr_expect_arr_eq(optim_average(optim), p, ELEMS * sizeof *p);
        for (int step = 1; step <= 5; step++) {
            optim_rig_step(optim, p, g, 0.5, step);
            for (size_t i = 0; i < ELEMS; i++)
                expected[i] = step == 1
                                  ? (double)p[i]
                                  : 0.75 * expected[i] + 0.25 * (double)p[i];
        }
        for (size_t i = 0; i < ELEMS; i++)
            cr_assert_float_eq((double)optim_average(optim)[i], expected[i],
                               1e-5, "%s: %zu", all[k], i);
        optim_close(optim);
    }
    free(expected);
    free(g);
    free(p);
}

/* With an average the update works in pieces, which must not change the bits.
 */
Test(ema, does_not_change_the_update)
{
    static const char *const all[] = {"optimizer: {sgd: {momentum: 0.9}}",
                                      "optimizer: adam",
                                      "optimizer: {rmsprop: {centered: true}}",
                                      "optimizer: lamb", "optimizer: lars"};
    float *p = malloc(ELEMS * sizeof *p), *g = malloc(ELEMS * sizeof *g);
    float *q = malloc(ELEMS * sizeof *q);

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        optim_t *with = open_yaml(all[k], 0.9), *without = open_yaml(all[k], 0);

        fill(q, g);
        fill(p, g);
        for (int step = 1; step <= 3; step++) {
            optim_rig_step(with, p, g, 0.1, step);
            optim_rig_step(without, q, g, 0.1, step);
        }
        cr_expect_arr_eq(p, q, ELEMS * sizeof *p, "%s", all[k]);
        optim_close(without);
        optim_close(with);
    }
    free(q);
    free(g);
    free(p);
}

/* Enough elements for a team of threads; several tensors for optimizers that
 * treat tensors separately. */
Test(ema, threads_change_no_bit)
{
    static const char *const all[] = {"optimizer: {sgd: {momentum: 0.9}}",
                                      "optimizer: adamw", "optimizer: rmsprop",
                                      "optimizer: lamb", "optimizer: lars"};
    enum { VIEWS = 5 };
    const size_t each = 70000, elems = VIEWS * each;
    optim_view_t views[VIEWS];
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = VIEWS,
                                   .elems = elems};
    const optim_ema_t ema = {.decay = 0.9};
    float *p = malloc(elems * sizeof *p), *g = malloc(elems * sizeof *g);
    float *one = malloc(2 * elems * sizeof *one);

    for (size_t i = 0; i < VIEWS; i++)
        views[i] = (optim_view_t){
            .name = "w", .offset = i * each, .count = each - i, .ndim = 2};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (int threads = 1; threads <= 3; threads++) {
            optim_t *optim = NULL;
            tree_t *tree = NULL;
            err_t err = ERR_INIT;

            cr_assert_eq(conf_parse("o.yaml", all[k], &tree, &err), ERR_OK);
            cr_assert_eq(optim_open(tree_get(tree, "optimizer"), &ema, &layout,
                                    &optim, &err),
                         ERR_OK, "%s", err.text);
            tree_free(tree);
            optim_place_team(optim_place(optim), threads);
            for (size_t i = 0; i < elems; i++) {
                p[i] = (float)(i % 1013) / 64;
                g[i] = (float)(i % 511) / 128 - 2;
            }
            for (int step = 1; step <= 3; step++)
                optim_rig_step(optim, p, g, 0.1, step);
            if (threads == 1) {
                memcpy(one, p, elems * sizeof *p);
                memcpy(one + elems, optim_average(optim), elems * sizeof *p);
            }
            cr_expect_arr_eq(p, one, elems * sizeof *p, "%s, %d", all[k],
                             threads);
            cr_expect_arr_eq(optim_average(optim), one + elems,
                             elems * sizeof *p, "%s, %d", all[k], threads);
            optim_close(optim);
        }
    free(one);
    free(g);
    free(p);
}

Test(ema, of_frozen_parameters_is_where_they_began)
{
    optim_t *optim = open_yaml(
        "optimizer: {sgd: , groups: [{match: a.bias, freeze: true}]}", 0.9);
    float *p = malloc(ELEMS * sizeof *p), *g = malloc(ELEMS * sizeof *g);

    fill(p, g);
    optim_rig_start(optim, p);
    optim_rig_step(optim, p, g, 0.1, 1);
    optim_rig_step(optim, p, g, 0.1, 2);
    cr_expect_arr_eq(optim_average(optim), p, 3 * sizeof *p);
    optim_close(optim);
    free(g);
    free(p);
}
