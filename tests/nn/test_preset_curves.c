/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole presets trained for 20 steps, compared with the losses of PyTorch
 * (tests/data/preset_curves.json): two presets with each optimizer and each
 * schedule with warm-up, every preset with two optimizers.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "nn/preset_formula.h"
#include "optim/optim_rig.h"

/* The parameters as views for optim; the caller frees them. */
static view_t *views_of(const nn_graph_t *graph)
{
    view_t *views = calloc((size_t)nn_graph_params(graph), sizeof *views);

    cr_assert_not_null(views);
    for (int p = 0; p < nn_graph_params(graph); p++) {
        const nn_param_t *param = nn_graph_param(graph, p);

        views[p] = (view_t){.name = param->name,
                            .offset = param->offset,
                            .count = param->count,
                            .ndim = param->ndim};
    }
    return views;
}

static void optim_of(const char *run, const nn_graph_t *graph,
                     int64_t epoch_steps, optim_t **optim,
                     optim_schedule_t **schedule)
{
    view_t *views = views_of(graph);
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = nn_graph_params(graph),
                                   .elems = nn_graph_param_elems(graph)};
    const optim_span_t span = {.steps = PRESET_STEPS,
                               .epoch_steps = epoch_steps};
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("run", run, &tree, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        optim_open(tree_get(tree, "optimizer"), NULL, &layout, optim, &err),
        ERR_OK, "%s: %s", run, err.text);
    cr_assert_eq(
        optim_schedule_open(tree_get(tree, "schedule"), &span, schedule, &err),
        ERR_OK, "%s: %s", run, err.text);
    tree_free(tree);
    free(views);
}

/* Set the weights and the state before the first step. */
static void curve_begin(const nn_graph_t *graph, const fixture_t *f)
{
    preset_weights(graph, f->params);
    memset(f->bind.grads, 0, nn_graph_param_elems(graph) * sizeof(float));
}

static void check_curve(const json_t *json, fixture_t *f, int64_t batch,
                        int64_t epoch_steps)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *losses = json_object_get(json, "losses");
    const double drift = json_number_value(json_object_get(json, "drift"));
    const double bound = fmax(PRESET_TOLERANCE, PRESET_NOISE * drift);
    const double denominator = nn_loss_denominator(f->graph, 0, batch);
    optim_t *optim = NULL;
    optim_schedule_t *schedule = NULL;

    cr_assert_eq(json_array_size(losses), PRESET_STEPS);
    optim_of(json_string_value(json_object_get(json, "run")), f->graph,
             epoch_steps, &optim, &schedule);
    curve_begin(f->graph, f);
    for (int64_t step = 0; step < PRESET_STEPS; step++) {
        const double expected =
            json_number_value(json_array_get(losses, (size_t)step));
        double found;

        preset_batch(f, batch, step);
        found = fixture_forward(f) / denominator;
        cr_expect(fabs(found - expected) <= bound * fabs(expected),
                  "%s, step %d: loss %.8g, PyTorch has %.8g", name, (int)step,
                  found, expected);
        fixture_backward(f, 1 / denominator, false);
        optim_rig_step(optim, f->params, f->bind.grads,
                       optim_schedule_lr(schedule, optim_lr(optim), step),
                       step + 1);
    }
    optim_schedule_close(schedule);
    optim_close(optim);
}

/* Check all curves of one preset; returns their number. */
static size_t check_preset(const json_t *preset, const json_t *root)
{
    const char *name = json_string_value(json_object_get(preset, "name"));
    const int64_t batch = json_integer_value(json_object_get(preset, "batch"));
    const int64_t epoch_steps =
        json_integer_value(json_object_get(root, "epoch_steps"));
    const json_t *curves = json_object_get(root, "curves"), *curve;
    nn_graph_t *graph =
        fixture_graph(json_string_value(json_object_get(preset, "run")));
    size_t found = 0, i;
    fixture_t f;

    fixture_open(&f, graph, "cpu", 0, batch, true);
    json_array_foreach(curves, i, curve)
    {
        if (strcmp(json_string_value(json_object_get(curve, "preset")), name) !=
            0)
            continue;
        check_curve(curve, &f, batch, epoch_steps);
        found++;
    }
    fixture_close(&f);
    nn_graph_close(graph);
    return found;
}

Test(preset_curves, presets_learn_as_in_pytorch)
{
    json_t *presets, *root;
    const json_t *cases, *preset;
    size_t most = 0, second = 0, i;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    presets = preset_load("presets.json");
    root = preset_load("preset_curves.json");
    cases = json_object_get(presets, "cases");
    json_array_foreach(cases, i, preset)
    {
        const size_t found = check_preset(preset, root);

        cr_expect_geq(found, 2);
        if (found >= most) {
            second = most;
            most = found;
        } else if (found > second) {
            second = found;
        }
    }
    /* seven optimizers with eight schedules */
    cr_expect_geq(second, 56);
    json_decref(root);
    json_decref(presets);
}
