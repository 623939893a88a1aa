/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Steps on samples made up in memory, on the CPU and on the test device: equal
 * losses, and equal parameters and running statistics before and after them,
 * which train_bench_pull brings to the host.
 */
#include "train/bench.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dev/dev_far.h"
#include "train/harness.h"

enum { STEPS = 3 };

/* What a benchmark shows after no step, and after STEPS steps. */
typedef struct shown {
    float *params[2], *buffers[2];
    size_t param_elems, buffer_elems;
    double losses[STEPS];
} shown_t;

static float *copy_of(const float *from, size_t elems)
{
    float *copy = malloc((elems + 1) * sizeof *copy);

    cr_assert_not_null(copy);
    memcpy(copy, from, elems * sizeof *copy);
    return copy;
}

static void keep(train_bench_t *bench, shown_t *shown, int at)
{
    const train_bench_info_t info = train_bench_info(bench);
    err_t err = ERR_INIT;

    cr_assert_eq(train_bench_pull(bench, &err), ERR_OK, "%s", err.text);
    shown->param_elems = nn_graph_param_elems(info.graph);
    shown->buffer_elems = nn_graph_buffer_elems(info.graph);
    shown->params[at] = copy_of(info.params, shown->param_elems);
    shown->buffers[at] = copy_of(info.buffers, shown->buffer_elems);
}

static void run(const char *device, shown_t *shown)
{
    const boot_config_t boot_config = {.timeout = 20};
    harness_t harness;
    train_bench_t *bench = NULL;
    train_config_t config;
    tree_t *tree;
    boot_t *boot;
    err_t err = ERR_INIT;

    harness_open(&harness, 24);
    harness.settings[0] =
        "model={input: [12], layers: [{linear: {out: 8}}, batchnorm, relu, "
        "{dropout: {rate: 0.1}}, {linear: {out: 2}}]}";
    harness.settings[1] = device;
    cr_assert_eq(harness_config(&harness, &tree, &config, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(boot_threads_open(1, &boot_config, &boot, &err), ERR_OK);
    cr_assert_eq(train_bench_open(&config, "threads", boot, &bench, &err),
                 ERR_OK, "%s", err.text);
    keep(bench, shown, 0);
    for (int i = 0; i < STEPS; i++)
        cr_assert_eq(train_bench_step(bench, &shown->losses[i], &err), ERR_OK,
                     "%s", err.text);
    keep(bench, shown, 1);
    train_bench_close(bench);
    train_config_free(&config);
    tree_free(tree);
    harness_close(&harness);
}

Test(bench, shows_the_same_model_on_a_device)
{
    shown_t cpu, far;

    run("train.device=cpu", &cpu);
    run("train.device=far", &far);
    cr_expect_arr_eq(cpu.losses, far.losses, sizeof cpu.losses);
    for (int at = 0; at < 2; at++) {
        cr_expect_arr_eq(cpu.params[at], far.params[at],
                         cpu.param_elems * sizeof(float));
        cr_expect_arr_eq(cpu.buffers[at], far.buffers[at],
                         cpu.buffer_elems * sizeof(float));
        free(far.params[at]);
        free(far.buffers[at]);
    }
    cr_expect_neq(
        memcmp(cpu.params[0], cpu.params[1], cpu.param_elems * sizeof(float)),
        0, "the steps changed nothing");
    cr_expect_neq(memcmp(cpu.buffers[0], cpu.buffers[1],
                         cpu.buffer_elems * sizeof(float)),
                  0);
    for (int at = 0; at < 2; at++) {
        free(cpu.params[at]);
        free(cpu.buffers[at]);
    }
    cr_expect_null(dev_far_newest());
}
