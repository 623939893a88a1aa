/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The check of a batch on the host gives the sentences of a forward on the
 * CPU. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "fixture.h"
#include "nn/nn_exec.h"

enum { BATCH = 5 };

static const char weighted[] =
    "model: {input: [3, 4], layers: [{linear: {out: 6, flatten: false}}]}\n"
    "loss: {cross_entropy: {classes: last, ignore_index: -7},\n"
    "       sample_weight: w}\n";

/* Both refuse the batch with [named] in one sentence, or both accept it. */
static void compare(fixture_t *f, const char *named)
{
    nn_result_t results[NN_FIELDS_MAX];
    err_t want = ERR_INIT, got = ERR_INIT;
    const err_code_t rc = fixture_forward_losses(f, results, &want);

    cr_expect_eq(rc, named == NULL ? ERR_OK : ERR_DATA, "%s", want.text);
    cr_expect_eq(nn_batch_check(f->graph, &f->batch, BATCH, &got), rc);
    cr_expect_str_eq(got.text, want.text);
    cr_expect(named == NULL || strstr(got.text, named) != NULL, "%s", got.text);
}

static void fixture_begin(fixture_t *f, const char *model)
{
    fixture_open(f, fixture_graph(model), "cpu", 0, BATCH, true);
    compare(f, NULL);
}

static void fixture_end(fixture_t *f)
{
    nn_graph_t *graph = (nn_graph_t *)f->graph;

    compare(f, NULL);
    fixture_close(f);
    nn_graph_close(graph);
}

Test(batch_check, tokens)
{
    fixture_t f;
    int32_t *tokens;
    int32_t was;

    fixture_begin(&f, fixture_tokens);
    tokens = f.input;
    was = tokens[7];
    tokens[7] = -3;
    compare(&f, "token -3");
    tokens[7] = was;
    fixture_end(&f);
}

Test(batch_check, classes)
{
    fixture_t f;
    int64_t *labels;
    int64_t was;

    fixture_begin(&f, weighted);
    labels = f.target;
    was = labels[4];
    labels[4] = 6;
    compare(&f, "sample 1 ");
    labels[4] = -7;
    compare(&f, NULL);
    labels[4] = was;
    fixture_end(&f);
}

Test(batch_check, weights_come_before_classes)
{
    fixture_t f;
    float *weights;
    float was;

    fixture_begin(&f, weighted);
    weights = f.targets[1];
    was = weights[2];
    weights[2] = NAN;
    ((int64_t *)f.target)[0] += 100;
    compare(&f, "sample 2 ");
    weights[2] = was;
    compare(&f, "classes 0 to 5");
    ((int64_t *)f.target)[0] -= 100;
    fixture_end(&f);
}
