/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/preset_formula.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t preset_key(const char *name)
{
    uint64_t key = 0xcbf29ce484222325u;

    for (; *name != '\0'; name++)
        key = (key ^ (unsigned char)*name) * 0x100000001b3u;
    return key;
}

uint64_t preset_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Number [i] of the sequence with [key]: in [-1, 1), exact in float32. */
static float number(uint64_t key, uint64_t i)
{
    return (float)((double)(preset_mix(key + i) >> 40) / 0x1p23 - 1);
}

void preset_weights(const nn_graph_t *graph, float *params)
{
    for (int p = 0; p < nn_graph_params(graph); p++) {
        const nn_param_t *param = nn_graph_param(graph, p);
        const uint64_t key = preset_key(param->name);
        const size_t length = strlen(param->name);
        const bool gain =
            length > 7 && strcmp(param->name + length - 7, ".weight") == 0;
        int half = 0;

        for (size_t fan = param->count / (size_t)param->dims[0]; fan >= 4;
             fan /= 4)
            half++;
        for (size_t i = 0; i < param->count; i++)
            params[param->offset + i] =
                param->ndim == 1 ? number(key, i) / 8 + (gain ? 1.0f : 0.0f)
                                 : ldexpf(number(key, i), -half);
    }
}

/* Fill [out] with the [count] real numbers of batch [step], from the sequence
 * called [name]. */
static void reals_make(const char *name, int64_t step, int64_t count,
                       float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = number(preset_key(name), (uint64_t)(step * count + i));
}

static int64_t whole(const char *name, int64_t at, int64_t below)
{
    return (int64_t)((preset_mix(preset_key(name) + (uint64_t)at) >> 33) %
                     (uint64_t)below);
}

void preset_batch(const fixture_t *f, int64_t samples, int64_t step)
{
    const nn_graph_t *graph = f->graph;

    for (int k = 0; k < nn_graph_inputs(graph); k++) {
        const nn_input_info_t input = nn_graph_input_info(graph, k);
        const int64_t count = samples * input.elems;

        if (input.tokens == 0)
            reals_make(input.name, step, count, f->inputs[k]);
        for (int64_t i = 0; i < count && input.tokens > 0; i++)
            ((int32_t *)f->inputs[k])[i] =
                (int32_t)whole(input.name, step * count + i, input.tokens);
    }
    for (int k = 0; k < nn_graph_targets(graph); k++) {
        const nn_target_info_t target = nn_graph_target_info(graph, k);
        const nn_loss_info_t loss = nn_graph_loss_info(graph, target.loss);
        const int64_t count = samples * loss.elems;

        if (loss.classes == 0)
            reals_make(target.name, step, count, f->targets[k]);
        for (int64_t i = 0; i < count && loss.classes > 0; i++)
            ((int64_t *)f->targets[k])[i] =
                whole(target.name, step * count + i, loss.classes);
    }
}

json_t *preset_load(const char *name)
{
    const char *source = getenv("srcdir");
    char path[4096];
    json_error_t error;
    json_t *json;

    snprintf(path, sizeof path, "%s/tests/data/%s",
             source != NULL ? source : ".", name);
    json = json_load_file(path, 0, &error);
    cr_assert_not_null(json, "%s: %s", path, error.text);
    return json;
}
