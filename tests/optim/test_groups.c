/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Parameter groups: which parameters they match, what they change, and what is
 * refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "conf/conf.h"
#include "optim/optim_rig.h"

/* A model of two layers in the order of nn: last layer first, with padding. */
static const optim_view_t views[] = {
    {.name = "linear1.bias", .offset = 0, .count = 1, .ndim = 1},
    {.name = "linear1.weight", .offset = 4, .count = 2, .ndim = 2},
    {.name = "conv1.bias", .offset = 8, .count = 1, .ndim = 1},
    {.name = "conv1.weight", .offset = 12, .count = 3, .ndim = 4},
};

#define ELEMS 16

static err_code_t open_try(const char *yaml, optim_t **out, err_t *err)
{
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = 4,
                                   .elems = ELEMS};
    tree_t *tree = NULL;
    err_code_t rc = conf_parse("o.yaml", yaml, &tree, err);

    cr_assert_eq(rc, ERR_OK, "%s", err->text);
    rc = optim_open(tree_get(tree, "optimizer"), NULL, &layout, out, err);
    tree_free(tree);
    return rc;
}

static optim_t *open_yaml(const char *yaml)
{
    optim_t *optim = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(open_try(yaml, &optim, &err), ERR_OK, "%s", err.text);
    return optim;
}

/* Set [p] to the parameters, all 1 at first (padding: 0), after one step with
 * gradients of 1 at a rate of 1. */
static void step_ones(const char *yaml, float p[ELEMS])
{
    optim_t *optim = open_yaml(yaml);
    float g[ELEMS] = {0};

    memset(p, 0, ELEMS * sizeof *p);
    for (int v = 0; v < 4; v++)
        for (size_t i = 0; i < views[v].count; i++)
            p[views[v].offset + i] = g[views[v].offset + i] = 1;
    optim_rig_step(optim, p, g, optim_lr(optim), 1);
    cr_expect_eq(p[1], 0);
    cr_expect_eq(p[11], 0);
    optim_close(optim);
}

/* Check how far each of the four parameters has moved. */
static void expect_moves(const char *yaml, const double moves[4])
{
    float p[ELEMS];

    step_ones(yaml, p);
    for (int v = 0; v < 4; v++)
        for (size_t i = 0; i < views[v].count; i++)
            cr_expect_float_eq(1 - p[views[v].offset + i], moves[v], 1e-6,
                               "%s: %s moved by %g, not %g", yaml,
                               views[v].name, 1 - p[views[v].offset + i],
                               moves[v]);
}

Test(groups, none_is_the_optimizer_for_all)
{
    expect_moves("optimizer: {sgd: {lr: 0.5}}", (double[]){.5, .5, .5, .5});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: }",
                 (double[]){.5, .5, .5, .5});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: []}",
                 (double[]){.5, .5, .5, .5});
}

Test(groups, any_option_may_differ_by_name)
{
    expect_moves("optimizer: {sgd: {lr: 0.5, weight_decay: 1}, groups: [{match:"
                 " '*.bias', weight_decay: 0}]}",
                 (double[]){.5, 1, .5, 1});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: [{match: 'conv1.*', "
                 "lr: 0.25}]}",
                 (double[]){.5, .5, .25, .25});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: [{match: linear1.weight, "
                 "lr_scale: 0.5}]}",
                 (double[]){.5, .25, .5, .5});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: [{match: [conv1.bias, "
                 "linear?.*], lr_scale: 0}]}",
                 (double[]){0, 0, 0, .5});
}

Test(groups, later_ones_override_key_by_key)
{
    expect_moves("optimizer: {sgd: {lr: 0.5, weight_decay: 1}, groups: ["
                 "{match: '*.bias', weight_decay: 0, lr_scale: 0.5}, "
                 "{match: 'conv1.*', lr_scale: 0.25}]}",
                 (double[]){.25, 1, .125, .25});
    expect_moves("optimizer: {sgd: {lr: 0.5}, groups: ["
                 "{match: '*', freeze: true}, "
                 "{match: 'linear1.*', freeze: false, lr: 1, lr_scale: 0.5}]}",
                 (double[]){.5, .5, 0, 0});
}

/* The rate of a group is its scale times the rate passed to optim_step. */
Test(groups, rates_stay_multiples_of_the_base)
{
    optim_t *optim = open_yaml("optimizer: {sgd: {lr: 0.5}, groups: [{match: "
                               "'*.bias', lr: 2}]}");
    float p[ELEMS] = {0}, g[ELEMS];

    for (int i = 0; i < ELEMS; i++)
        g[i] = 1;
    optim_scale_lr(optim, 4);
    cr_expect_eq(optim_lr(optim), 2);
    optim_rig_step(optim, p, g, 0.125, 1);
    cr_expect_eq(p[0], -0.5f);
    cr_expect_eq(p[4], -0.125f);
    optim_close(optim);
}

/* If one group has momentum, the slot exists; the other groups do not use it.
 */
Test(groups, state_is_what_any_group_needs)
{
    optim_t *optim = open_yaml("optimizer: {sgd: {lr: 1}, groups: [{match: "
                               "conv1.weight, momentum: 0.5}]}");
    float p[ELEMS] = {0}, g[ELEMS];

    for (int i = 0; i < ELEMS; i++)
        g[i] = 1;
    cr_assert_eq(optim_slots(optim), 1);
    optim_rig_step(optim, p, g, 1, 1);
    optim_rig_step(optim, p, g, 1, 2);
    cr_expect_eq(p[0], -2);
    cr_expect_eq(p[12], -2.5f);
    cr_expect_eq(optim_slot_data(optim, 0)[0], 0);
    cr_expect_eq(optim_slot_data(optim, 0)[12], 1.5f);
    optim_close(optim);
}

Test(groups, frozen_parameters_keep_their_bits_and_no_norm_sees_them)
{
    optim_t *optim =
        open_yaml("optimizer: {adamw: {lr: 1, weight_decay: 0.5}, groups: "
                  "[{match: 'conv1.*', freeze: true}]}");
    float p[ELEMS], g[ELEMS];

    cr_expect_eq(optim_frozen(optim), 4);
    for (int i = 0; i < ELEMS; i++)
        p[i] = 0.1f * (float)i, g[i] = 3;
    optim_rig_step(optim, p, g, 1, 1);
    for (int i = 8; i < 15; i++)
        cr_expect_eq(p[i], 0.1f * (float)i);
    cr_expect_neq(p[4], 0.1f * 4);
    optim_rig_mask(optim, g);
    cr_expect_eq(g[4], 3);
    cr_expect_eq(g[8], 0);
    cr_expect_eq(g[14], 0);
    optim_close(optim);
}

/* ---- errors -------------------------------------------------------------- */

typedef struct wrong {
    const char *yaml, *begins, *says;
} wrong_t;

static const wrong_t wrongs[] = {
    {"optimizer:\n  sgd:\n  groups:\n    - {match: conv2.weight, lr: 1}\n",
     "o.yaml:4:15: 'conv2.weight' matches no parameter; did you mean "
     "'conv1.weight'?",
     "The model has conv1.weight, conv1.bias, linear1.weight, linear1.bias"},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: ['*.bias', 'cov1.*']}\n",
     "o.yaml:4:26: 'cov1.*' matches no parameter; did you mean 'conv1.*'?", ""},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*.biass'}\n",
     "o.yaml:4:15: '*.biass' matches no parameter; did you mean '*.bias'?", ""},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: something else}\n",
     "o.yaml:4:15: 'something else' matches no parameter; The model has", ""},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*', beta1: 1}\n",
     "o.yaml:4:20: unknown key 'beta1' in optimizer.groups[0]; known keys",
     "match, lr_scale, freeze, lr, momentum, dampening, nesterov, "
     "weight_decay"},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*', lr_scal: 1}\n",
     "o.yaml:4:20: unknown key 'lr_scal'", "'lr_scale'"},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*', lr: -1}\n",
     "o.yaml:4:24: optimizer.groups[0].lr", "-1"},
    {"optimizer:\n  sgd:\n  groups:\n    - {lr: 1}\n",
     "o.yaml:4:7: optimizer.groups[0].match is missing", "'*.bias'"},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: []}\n",
     "o.yaml:4:15: 'match' names no pattern", ""},
    {"optimizer:\n  sgd:\n  groups:\n    - '*.bias'\n",
     "o.yaml:4:7: a group is a map", ""},
    {"optimizer:\n  sgd:\n  groups: {match: '*'}\n",
     "o.yaml:3:11: optimizer.groups is a list of maps", ""},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*.bias', nesterov: true}\n",
     "o.yaml:4:7: optimizer.sgd.nesterov needs a momentum above 0", ""},
    {"optimizer:\n  sgd: {lr: 0}\n  groups:\n    - {match: '*.bias', lr: 1}\n",
     "o.yaml:4:7: a group's lr", "0"},
    {"optimizer:\n  sgd:\n  groups:\n    - {match: '*', freeze: true}\n",
     "o.yaml:4:5: every parameter is frozen", ""},
};

Test(groups, every_sentence_has_its_place)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const wrong_t *w = &wrongs[i];
        optim_t *optim = NULL;
        err_t err = ERR_INIT;

        cr_expect_eq(open_try(w->yaml, &optim, &err), ERR_CONFIG, "%s",
                     w->yaml);
        cr_expect_null(optim);
        cr_expect_eq(strncmp(err.text, w->begins, strlen(w->begins)), 0,
                     "expected: %s\n   found: %s", w->begins, err.text);
        cr_expect_not_null(strstr(err.text, w->says), "%s", err.text);
        optim_close(optim);
    }
}

Test(groups, more_than_64_are_refused)
{
    str_buf_t yaml = {0};
    optim_t *optim = NULL;
    err_t err = ERR_INIT;

    str_buf_add(&yaml, "optimizer:\n  sgd:\n  groups:\n");
    for (int i = 0; i < 64; i++)
        str_buf_add(&yaml, "    - {match: '*', lr_scale: %d}\n", i);
    cr_expect_eq(open_try(yaml.text, &optim, &err), ERR_OK, "%s", err.text);
    optim_close(optim);
    str_buf_add(&yaml, "    - {match: '*'}\n");
    cr_expect_eq(open_try(yaml.text, &optim, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "more than 64"), "%s", err.text);
    str_buf_free(&yaml);
}
