/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The estimated cost of a plan, compared with counts by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "nn/cost.h"
#include "nn/fixture.h"

#define HUGE_RATE 1e30

static const char *const model = "model:\n"
                                 "  input: [7]\n"
                                 "  layers:\n"
                                 "    - linear: {out: 9}\n"
                                 "    - linear: {out: 4}\n"
                                 "loss: cross_entropy\n";

static nn_cost_t cost_of(bool training, double flops_s, double bytes_s)
{
    nn_graph_t *graph = fixture_graph(model);
    nn_cost_t cost;
    fixture_t f;

    fixture_open(&f, graph, "cpu", 0, 5, training);
    cost = nn_exec_cost(f.exec, flops_s, bytes_s);
    fixture_close(&f);
    nn_graph_close(graph);
    return cost;
}

Test(cost, flops)
{
    /* operations of the products, and 3 per logit for the loss */
    const double linear1 = 2 * 5 * 7 * 9, linear2 = 2 * 5 * 9 * 4;
    const double loss = 3 * 5 * 4;
    nn_cost_t cost = cost_of(true, 1, HUGE_RATE);

    cr_expect_eq(cost.forward_flops, linear1 + linear2 + loss);
    /* the gradient of the model's input is not computed */
    cr_expect_eq(cost.backward_flops, linear1 + 2 * linear2 + loss);
    cr_expect_eq(cost.seconds, cost.forward_flops + cost.backward_flops);
    cr_expect_eq(cost.compute_seconds, cost.seconds);
    cost = cost_of(false, 1, HUGE_RATE);
    cr_expect_eq(cost.forward_flops, linear1 + linear2 + loss);
    cr_expect_eq(cost.backward_flops, 0);
}

Test(cost, bytes)
{
    const double x = 5 * 7, h = 5 * 9, y = 5 * 4, one = 1;
    const double w1 = 7 * 9 + 9, w2 = 9 * 4 + 4;
    const double forward = x + w1 + h + h + w2 + y + y + one;
    nn_cost_t cost = cost_of(false, HUGE_RATE, sizeof(float));

    cr_expect_lt(fabs(cost.seconds - forward), 2,
                 "%g instead of %g: the loss may take a double", cost.seconds,
                 forward);
    cr_expect_eq(cost.compute_seconds, 0);
    cost = cost_of(true, HUGE_RATE, sizeof(float));
    cr_expect_gt(cost.seconds, 2 * forward);
    cr_expect_lt(cost.seconds, 4 * forward);
}

Test(cost, facts)
{
    nn_graph_t *graph = fixture_graph("model:\n"
                                      "  input: [3, 8, 8]\n"
                                      "  layers:\n"
                                      "    - conv: {out: 16, kernel: 3}\n"
                                      "    - relu\n"
                                      "    - linear: {out: 4, bias: false}\n"
                                      "loss: cross_entropy\n");
    nn_plan_facts_t plain, facts;
    fixture_t f;

    fixture_open(&f, graph, "ref", 0, 5, true);
    plain = nn_exec_facts(f.exec);
    fixture_close(&f);
    cr_expect(plain.layers == 3 && plain.biases == 1);
    cr_expect_eq(plain.blocked, 0);
    fixture_open(&f, graph, "cpu", 0, 5, true);
    facts = nn_exec_facts(f.exec);
    cr_expect(facts.layers == 3 && facts.biases == 1);
    cr_expect_eq(facts.in_place, 1, "relu over conv, not %d", facts.in_place);
    /* the image after relu is read by linear's backward */
    cr_expect_geq(facts.kept, 5 * 16 * 6 * 6 * sizeof(float));
    cr_expect_leq(facts.kept, nn_exec_activation_bytes(f.exec) + 4096);
    cr_expect_gt(facts.apart, facts.kept);
    fixture_close(&f);
    fixture_open(&f, graph, "cpu", 0, 5, false);
    facts = nn_exec_facts(f.exec);
    cr_expect_eq(facts.kept, 0, "evaluation keeps %zu bytes", facts.kept);
    fixture_close(&f);
    nn_graph_close(graph);
}
