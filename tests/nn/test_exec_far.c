/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole graphs on the test device, in both of its orders: forward and backward
 * have the bits of cpu, access no memory of the device, and wait only where the
 * results are asked for.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dev/dev_far.h"
#include "fixture_dev.h"

enum { BATCH = 6 };

static void check_same(fixture_dev_t *far, const char *what, const void *at,
                       const void *want, size_t bytes)
{
    void *got = fixture_dev_read(far, at, bytes);

    cr_assert(memcmp(got, want, bytes) == 0, "%s: other bits on far", what);
    free(got);
}

static void check_model(const char *model, const nn_exec_config_t *config,
                        int order)
{
    nn_graph_t *graph = fixture_graph(model);
    const size_t losses = (size_t)nn_graph_losses(graph);
    nn_result_t results[NN_FIELDS_MAX] = {{0}};
    fixture_dev_t far;
    fixture_t cpu;
    err_t err = ERR_INIT;
    int64_t waits;

    fixture_open_as(&cpu, graph, config, 0);
    for (int k = 0; k < nn_graph_losses(graph); k++)
        cpu.step.scales[k] = 0.25;
    fixture_dev_open(&far, &cpu, config, "far", order);
    waits = dev_far_counts(far.dev).waits;
    for (int i = 0; i < 2; i++) {
        cpu.bind.results = results;
        nn_exec_bind(cpu.exec, &cpu.bind);
        cr_assert_eq(nn_exec_forward(cpu.exec, &cpu.batch, &err), ERR_OK);
        cr_assert_eq(nn_exec_backward(cpu.exec, &cpu.batch, i > 0, &err),
                     ERR_OK);
        cr_assert_eq(nn_exec_forward(far.exec, &far.batch, &err), ERR_OK, "%s",
                     err.text);
        cr_assert_eq(nn_exec_backward(far.exec, &far.batch, i > 0, &err),
                     ERR_OK, "%s", err.text);
    }
    cr_expect_eq(dev_far_counts(far.dev).waits, waits, "a pass waited");
    check_same(&far, "gradients", far.bind.grads, cpu.bind.grads,
               nn_graph_param_elems(graph) * sizeof(float));
    check_same(&far, "moments", far.bind.moments, cpu.bind.moments,
               nn_graph_moment_elems(graph) * sizeof(double));
    check_same(&far, "results", far.bind.results, results,
               losses * sizeof *results);
    fixture_dev_close(&far);
    fixture_close(&cpu);
    nn_graph_close(graph);
}

static void check_models(int order, bool recompute)
{
    const char *const models[] = {fixture_mlp, fixture_cnn, fixture_graph_model,
                                  fixture_smooth, fixture_tokens};
    const nn_exec_config_t config = {.op_backend = "cpu",
                                     .batch = BATCH,
                                     .training = true,
                                     .recompute = recompute,
                                     .threads = 1};

    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(models[i], &config, order);
}

Test(exec_far, last_first)
{
    check_models(DEV_FAR_LAST_FIRST, false);
}

Test(exec_far, needed_only)
{
    check_models(DEV_FAR_NEEDED_ONLY, false);
}

Test(exec_far, recompute)
{
    check_models(DEV_FAR_LAST_FIRST, true);
}

/* Evaluation: the results and the output are copied back. */
Test(exec_far, results_and_output)
{
    const nn_exec_config_t config = {
        .op_backend = "cpu", .batch = BATCH, .threads = 1};
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    nn_result_t want[NN_FIELDS_MAX], got[NN_FIELDS_MAX];
    float outputs[2][BATCH * 64];
    const size_t elems = BATCH * (size_t)nn_graph_loss_info(graph, 0).classes;
    fixture_dev_t far;
    fixture_t cpu;
    err_t err = ERR_INIT;

    cr_assert_leq(elems, BATCH * 64);
    fixture_open_as(&cpu, graph, &config, 0);
    fixture_dev_open(&far, &cpu, &config, "far", DEV_FAR_LAST_FIRST);
    cr_assert_eq(fixture_forward_losses(&cpu, want, &err), ERR_OK);
    cr_assert_eq(nn_exec_output(cpu.exec, 0, outputs[0], &err), ERR_OK);
    cr_assert_eq(nn_exec_forward(far.exec, &far.batch, &err), ERR_OK);
    cr_assert_eq(nn_exec_results(far.exec, got, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(nn_exec_output(far.exec, 0, outputs[1], &err), ERR_OK);
    cr_expect_eq(got[0].loss_sum, want[0].loss_sum);
    cr_expect_eq(got[0].correct, want[0].correct);
    cr_expect_arr_eq(outputs[1], outputs[0], elems * sizeof(float));
    fixture_dev_close(&far);
    fixture_close(&cpu);
    nn_graph_close(graph);
}

/* A label that is no class is reported by the next wait. */
Test(exec_far, bad_label)
{
    const nn_exec_config_t config = {
        .op_backend = "cpu", .batch = BATCH, .training = true, .threads = 1};
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    nn_result_t results[NN_FIELDS_MAX];
    fixture_dev_t far;
    fixture_t cpu;
    err_t err = ERR_INIT;

    fixture_open_as(&cpu, graph, &config, 0);
    ((int64_t *)cpu.target)[1] = 1000;
    fixture_dev_open(&far, &cpu, &config, "far", DEV_FAR_NEEDED_ONLY);
    cr_assert_eq(nn_exec_forward(far.exec, &far.batch, &err), ERR_OK);
    cr_expect_eq(nn_exec_results(far.exec, results, &err), ERR_DATA);
    cr_expect(strstr(err.text, "1000"), "%s", err.text);
    fixture_dev_close(&far);
    fixture_close(&cpu);
    nn_graph_close(graph);
}
