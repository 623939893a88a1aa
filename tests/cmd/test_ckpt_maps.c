/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The maps that come with cddp, against the layouts that the packages' models
 * have (tests/data/layout_*.txt): every tensor here has its place there and
 * back, with its shape. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/ckpt_map.h"
#include "conf/conf.h"
#include "nn/nn.h"

enum { TENSORS_MAX = 400 };

/* A tensor of the other program. */
typedef struct theirs {
    char name[96];
    int ndim;
    long long dims[4];
    int hits; /* tensors here that go there */
} theirs_t;

typedef struct pair {
    nn_graph_t *graph;
    cmd_map_t *map;
    theirs_t theirs[TENSORS_MAX];
    int count;
} pair_t;

/* ---- reading ------------------------------------------------------------- */

static char *source_path(const char *name)
{
    const char *source = getenv("srcdir");

    return str_printf("%s/%s", source == NULL ? "." : source, name);
}

/* Read the float tensors of a layout. Counters of other types are not in a
 * model here. */
static void layout_read(pair_t *pair, const char *name)
{
    char *part = str_printf("tests/data/layout_%s.txt", name);
    char *path = source_path(part), *text, *next, *line;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    next = text;
    cr_assert_eq(strncmp(next, "# state_dict() of ", 18), 0);
    strsep(&next, "\n");
    while ((line = strsep(&next, "\n")) != NULL && line[0] != '\0') {
        theirs_t *theirs = &pair->theirs[pair->count];
        char type[16];
        long long *dims = theirs->dims;
        int read = sscanf(line, "%95s %15s %lld %lld %lld %lld", theirs->name,
                          type, &dims[0], &dims[1], &dims[2], &dims[3]);

        cr_assert_geq(read, 2, "%s", line);
        theirs->ndim = read - 2;
        pair->count += strcmp(type, "float32") == 0;
        cr_assert_lt(pair->count, TENSORS_MAX);
    }
    free(text);
    free(path);
    free(part);
}

static void graph_read(pair_t *pair, const char *model)
{
    char *text = str_printf("model: %s\nloss: cross_entropy\n", model);
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("test", text, &tree, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(nn_graph_open(tree_get(tree, "model"), tree_get(tree, "loss"),
                               &pair->graph, &err),
                 ERR_OK, "%s", err.text);
    tree_free(tree);
    free(text);
}

static pair_t *pair_open(const char *map, const char *model, const char *layout)
{
    pair_t *pair = calloc(1, sizeof *pair);
    char *maps = source_path("share/maps");
    err_t err = ERR_INIT;

    setenv("CDDP_MAPS", maps, 1);
    cr_assert_eq(cmd_map_read(map, &pair->map, &err), ERR_OK, "%s", err.text);
    layout_read(pair, layout);
    graph_read(pair, model);
    free(maps);
    return pair;
}

static void pair_close(pair_t *pair)
{
    nn_graph_close(pair->graph);
    cmd_map_free(pair->map);
    free(pair);
}

/* ---- comparing ----------------------------------------------------------- */

static const nn_param_t *ours_at(const pair_t *pair, int index)
{
    const int params = nn_graph_params(pair->graph);

    if (index < params)
        return nn_graph_param(pair->graph, index);
    index -= params;
    return index < nn_graph_buffers(pair->graph)
               ? nn_graph_buffer(pair->graph, index)
               : NULL;
}

static const nn_param_t *ours_find(const pair_t *pair, const char *name)
{
    const nn_param_t *ours;

    for (int i = 0; (ours = ours_at(pair, i)) != NULL; i++)
        if (strcmp(ours->name, name) == 0)
            return ours;
    return NULL;
}

static theirs_t *theirs_find(pair_t *pair, const char *name)
{
    for (int i = 0; i < pair->count; i++)
        if (strcmp(pair->theirs[i].name, name) == 0)
            return &pair->theirs[i];
    return NULL;
}

static void shapes_check(const nn_param_t *ours, const theirs_t *theirs,
                         const cmd_map_hit_t *hit)
{
    const int more = hit->leading;

    cr_assert_eq(ours->ndim + more, theirs->ndim, "%s", theirs->name);
    for (int d = 0; d < ours->ndim; d++)
        cr_expect_eq(
            ours->dims[d],
            theirs->dims[hit->transposed ? ours->ndim - 1 - d : more + d],
            "%s, %s: dimension %d", ours->name, theirs->name, d);
}

/* An export of our model has exactly their tensors. */
static void out_check(pair_t *pair)
{
    const nn_param_t *ours;

    for (int i = 0; (ours = ours_at(pair, i)) != NULL; i++) {
        cmd_map_hit_t hit;
        int line = 0;

        while (cmd_map_find(pair->map, CMD_MAP_OUT, ours->name, &line, &hit)) {
            theirs_t *theirs = theirs_find(pair, hit.name);

            cr_assert(theirs, "%s: they have no %s", ours->name, hit.name);
            shapes_check(ours, theirs, &hit);
            theirs->hits++;
            free(hit.name);
        }
    }
    for (int i = 0; i < pair->count; i++)
        cr_expect_eq(pair->theirs[i].hits, 1, "%s has %d tensors",
                     pair->theirs[i].name, pair->theirs[i].hits);
}

/* An import of their tensors, whose names get the first part [cut] cut off, has
 * exactly ours. */
static void in_check(const pair_t *pair, const char *cut)
{
    int found = 0, count = 0;

    for (int i = 0; i < pair->count; i++) {
        const theirs_t *theirs = &pair->theirs[i];
        const char *name = theirs->name;
        cmd_map_hit_t hit;
        int line = 0;

        if (strncmp(name, cut, strlen(cut)) == 0)
            name += strlen(cut);
        cr_assert(cmd_map_find(pair->map, CMD_MAP_IN, name, &line, &hit),
                  "no line for %s", name);
        if (hit.name == NULL)
            continue;
        found++;
        cr_assert(ours_find(pair, hit.name), "%s: no %s", name, hit.name);
        shapes_check(ours_find(pair, hit.name), theirs, &hit);
        free(hit.name);
    }
    while (ours_at(pair, count) != NULL)
        count++;
    cr_expect_eq(found, count, "%d of %d tensors", found, count);
}

static void map_check(const char *map, const char *model, const char *layout)
{
    pair_t *pair = pair_open(map, model, layout);

    out_check(pair);
    in_check(pair, "");
    in_check(pair, "transformer.");
    pair_close(pair);
}

Test(ckpt_maps, gpt2)
{
    map_check("gpt2", "{preset: gpt2, input: [1024]}", "gpt2");
    map_check("gpt2-dropout", "{preset: gpt2, input: [1024], dropout: 0.1}",
              "gpt2");
}

Test(ckpt_maps, resnets)
{
    static const char *const names[] = {"resnet18", "resnet34", "resnet50"};

    for (int i = 0; i < 3; i++) {
        char *model = str_printf("{preset: %s, input: [3, 224, 224], classes: "
                                 "1000}",
                                 names[i]);

        map_check(names[i], model, names[i]);
        free(model);
    }
}

Test(ckpt_maps, vit)
{
    map_check("vit",
              "{preset: vit, input: [3, 224, 224], classes: 1000, width: 768, "
              "heads: 12, pool: token, eps: 1.0e-6}",
              "vit_b_16");
}

/* Tensors of older files that are no weights. */
Test(ckpt_maps, masks_are_left_out)
{
    pair_t *pair = pair_open("gpt2", "{preset: gpt2, input: [1024]}", "gpt2");
    static const char *const names[] = {"h.3.attn.bias",
                                        "transformer.h.11.attn.masked_bias"};

    for (int i = 0; i < 2; i++) {
        cmd_map_hit_t hit;
        int line = 0;

        cr_assert(cmd_map_find(pair->map, CMD_MAP_IN, names[i], &line, &hit));
        cr_expect_null(hit.name);
    }
    pair_close(pair);
}

/* A file is preferred to a map that comes with cddp; what is neither is named.
 */
Test(ckpt_maps, found_by_name)
{
    char *maps = source_path("share/maps");
    cmd_map_t *map = NULL;
    err_t err = ERR_INIT;

    setenv("CDDP_MAPS", maps, 1);
    cr_expect_eq(cmd_map_read("gpt3", &map, &err), ERR_IO);
    cr_expect(strstr(err.text, "gpt3") && strstr(err.text, maps), "%s",
              err.text);
    cr_expect_eq(cmd_map_read("./gpt2", &map, &err), ERR_IO);
    free(maps);
}
