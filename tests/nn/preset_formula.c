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

/* In [-1, 1), exact in float32. */
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

void preset_batch(const fixture_t *f, int64_t samples, int64_t step)
{
    const nn_graph_t *graph = f->graph;
    const int64_t tokens = nn_graph_tokens(graph);
    const int64_t classes = nn_graph_classes(graph);
    const int64_t targets = samples * nn_graph_target_elems(graph);
    int64_t dims[OP_DIMS_MAX], elems = samples;
    const uint64_t input = preset_key("input"), target = preset_key("target");

    for (int d = 0, ndim = nn_graph_input(graph, dims); d < ndim; d++)
        elems *= dims[d];
    for (int64_t i = 0; i < elems; i++)
        if (tokens > 0)
            ((int32_t *)f->input)[i] =
                (int32_t)((preset_mix(input + (uint64_t)(step * elems + i)) >>
                           33) %
                          (uint64_t)tokens);
        else
            ((float *)f->input)[i] =
                number(input, (uint64_t)(step * elems + i));
    for (int64_t i = 0; i < targets; i++) {
        const uint64_t at = (uint64_t)(step * targets + i);

        if (classes > 0)
            ((int64_t *)f->target)[i] =
                (int64_t)((preset_mix(target + at) >> 33) % (uint64_t)classes);
        else
            ((float *)f->target)[i] = number(target, at);
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
