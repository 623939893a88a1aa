/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Layers that one call computes: which, and that no bit changes. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "nn/cost.h"
#include "nn/fixture.h"

#define BATCH 6

/* Every form, and what must stay apart: a batchnorm that others read, one that
 * does not come right before the add, one whose input is added to it, too, an
 * add of three. */
static const char *const fused_model =
    "model:\n"
    "  input: [3, 8, 8]\n"
    "  layers:\n"
    "    - {name: c0, conv: {out: 19, kernel: 3, pad: 1}}\n"
    "    - {name: n0, batchnorm: }\n"
    "    - {name: r0, relu: }\n"
    "    - {name: c1, conv: {out: 19, kernel: 3, pad: 1}}\n"
    "    - {name: n1, batchnorm: }\n"
    "    - {name: a1, add: , from: [n1, r0]}\n"
    "    - {name: r1, relu: }\n"
    "    - {name: n2, batchnorm: }\n"
    "    - {name: c2, conv: {out: 19, kernel: 1}, from: r1}\n"
    "    - {name: n3, batchnorm: }\n"
    "    - {name: a2, add: , from: [n2, n3]}\n"
    "    - {name: r2, relu: }\n"
    "    - {name: n4, batchnorm: }\n"
    "    - {name: r3, relu: }\n"
    "    - {name: a3, add: , from: [r3, n4, r2]}\n"
    "    - {name: r4, relu: }\n"
    "    - {name: a4, add: , from: [r4, r4]}\n"
    "    - {name: r5, relu: }\n"
    "    - {name: n6, batchnorm: }\n"
    "    - {name: a5, add: , from: [n6, r5]}\n"
    "    - {name: r7, relu: }\n"
    "    - {name: a6, add: , from: [r7, r5]}\n"
    "    - linear: {out: 33}\n"
    "    - {name: n5, batchnorm: }\n"
    "    - {name: r6, relu: }\n"
    "    - linear: {out: 5}\n"
    "loss: cross_entropy\n";

static void open_fused(const nn_graph_t *graph, bool unfused, bool training,
                       int threads, fixture_t *f)
{
    const nn_exec_config_t config = {.op_backend = "cpu",
                                     .batch = BATCH,
                                     .training = training,
                                     .unfused = unfused,
                                     .threads = threads};

    fixture_open_as(f, graph, &config, 0);
}

static int layer_called(const nn_graph_t *graph, const char *name)
{
    for (int i = 0; i < nn_graph_layers(graph); i++)
        if (strcmp(nn_graph_layer(graph, i).name, name) == 0)
            return i;
    cr_assert_fail("no layer %s", name);
    return -1;
}

static void expect_joined(const fixture_t *f, const char *layer,
                          const char *with)
{
    const int found =
        nn_exec_layer_plan(f->exec, layer_called(f->graph, layer)).joined;

    cr_expect_eq(found, with == NULL ? -1 : layer_called(f->graph, with),
                 "%s is joined to layer %d", layer, found);
}

Test(fuse, what_goes_together_is_one_call)
{
    nn_graph_t *graph = fixture_graph(fused_model);
    fixture_t f;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    open_fused(graph, false, true, 1, &f);
    expect_joined(&f, "n0", "r0");
    expect_joined(&f, "n1", "r1");
    expect_joined(&f, "a1", "r1");
    expect_joined(&f, "n2", NULL);
    expect_joined(&f, "n3", "r2");
    expect_joined(&f, "a2", "r2");
    expect_joined(&f, "n4", NULL);
    expect_joined(&f, "r3", NULL);
    expect_joined(&f, "a3", "r4");
    expect_joined(&f, "a4", "r5");
    expect_joined(&f, "n6", NULL);
    expect_joined(&f, "a5", "r7");
    expect_joined(&f, "n5", "r6");
    expect_joined(&f, "r6", NULL);
    cr_expect_eq(nn_exec_facts(f.exec).fused, 9);
    fixture_close(&f);
    open_fused(graph, true, true, 1, &f);
    cr_expect_eq(nn_exec_facts(f.exec).fused, 0);
    fixture_close(&f);
    nn_graph_close(graph);
}

/* In training, with any number of threads, and in evaluation. */
Test(fuse, fused_calls_change_no_bit)
{
    nn_graph_t *graph = fixture_graph(fused_model);
    const size_t bytes = nn_graph_param_elems(graph) * sizeof(float);

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    for (int round = 0; round < 2; round++) {
        const bool training = round == 0;
        fixture_t fused, apart;

        open_fused(graph, false, training, 1, &fused);
        open_fused(graph, true, training, 1, &apart);
        cr_expect_eq(fixture_forward(&fused), fixture_forward(&apart));
        if (training) {
            fixture_backward(&fused, 1, false);
            fixture_backward(&apart, 1, false);
        }
        cr_expect_eq(memcmp(fused.bind.grads, apart.bind.grads, bytes), 0);
        cr_expect_eq(memcmp(fused.bind.moments, apart.bind.moments,
                            nn_graph_moment_elems(graph) * sizeof(double)),
                     0);
        fixture_close(&fused);
        fixture_close(&apart);
    }
    nn_graph_close(graph);
}

/* A run that diverges must say so: relu may not turn NaN into 0. */
Test(fuse, nan_passes_fused_calls)
{
    nn_graph_t *graph = fixture_graph(fused_model);

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    for (int training = 0; training < 2; training++) {
        fixture_t f;

        open_fused(graph, false, training, 1, &f);
        ((float *)f.input)[7] = NAN;
        cr_expect(isnan(fixture_forward(&f)), "training: %d", training);
        fixture_close(&f);
    }
    nn_graph_close(graph);
}
