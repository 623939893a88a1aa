/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/place_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conf/conf.h"

const optim_view_t place_views[5] = {
    {.name = "a.weight", .offset = 0, .count = 3000, .ndim = 2},
    {.name = "a.bias", .offset = 3008, .count = 40, .ndim = 1},
    {.name = "b.weight", .offset = 3056, .count = 15000, .ndim = 4},
    {.name = "b.bias", .offset = 18064, .count = 33, .ndim = 1},
    {.name = "c.weight", .offset = 18112, .count = 10460, .ndim = 2},
};

enum { VIEWS = sizeof place_views / sizeof place_views[0] };

static void fill(uint64_t seed, float *out)
{
    for (int v = 0; v < VIEWS; v++)
        for (size_t i = 0; i < place_views[v].count; i++) {
            const size_t at = place_views[v].offset + i;
            rng_t rng;

            rng_open(&rng, seed, 0, at, 0);
            out[at] = (float)(rng_uniform(&rng) - 0.5);
        }
}

void place_rig_put(place_rig_t *rig, void *to, const void *from, size_t bytes)
{
    err_t err = ERR_INIT;

    cr_assert_eq(dev_copy(rig->stream, to, from, bytes, DEV_HOST_TO_DEV, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(dev_stream_wait(rig->stream, &err), ERR_OK, "%s", err.text);
}

void place_rig_get(place_rig_t *rig, void *to, const void *from, size_t bytes)
{
    err_t err = ERR_INIT;

    cr_assert_eq(dev_copy(rig->stream, to, from, bytes, DEV_DEV_TO_HOST, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(dev_stream_wait(rig->stream, &err), ERR_OK, "%s", err.text);
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t optimizer_open(place_rig_t *rig, err_t *err)
{
    const place_config_t *config = &rig->config;
    const optim_ema_t ema = {.decay = config->decay};
    const optim_layout_t layout = {.dev = rig->dev,
                                   .views = place_views,
                                   .view_count = VIEWS,
                                   .elems = PLACE_ELEMS,
                                   .ranges = config->ranges,
                                   .range_count = config->range_count};
    char text[512];
    tree_t *tree = NULL;
    err_t parse = ERR_INIT;
    err_code_t rc;

    snprintf(text, sizeof text, "optimizer: {%s}", config->optimizer);
    cr_assert_eq(conf_parse("o.yaml", text, &tree, &parse), ERR_OK, "%s",
                 parse.text);
    rc = optim_open(tree_get(tree, "optimizer"), &ema, &layout, &rig->optim,
                    err);
    tree_free(tree);
    if (rc == ERR_OK)
        optim_clip_value(rig->optim, config->most);
    return rc;
}

static err_code_t block(place_rig_t *rig, size_t bytes, void *out, err_t *err)
{
    void *at = NULL;
    err_code_t rc = dev_alloc(rig->dev, bytes, "a test", &at, err);

    memcpy(out, &at, sizeof at);
    return rc;
}

err_code_t place_rig_try(place_rig_t *rig, dev_device_t *dev,
                         const place_config_t *config, err_t *err)
{
    const size_t bytes = PLACE_ELEMS * sizeof(float);
    err_code_t rc;

    *rig = (place_rig_t){.config = *config,
                         .dev = dev,
                         .numbers = calloc(PLACE_ELEMS, sizeof *rig->numbers)};
    rc = dev_stream_open(dev, DEV_STREAM_COMPUTE, &rig->stream, err);
    if (rc == ERR_OK)
        rc = optimizer_open(rig, err);
    if (rc == ERR_OK)
        rc = block(rig, bytes, &rig->params, err);
    if (rc == ERR_OK)
        rc = block(rig, bytes, &rig->grads, err);
    if (rc == ERR_OK)
        rc = block(rig, sizeof *rig->step, &rig->step, err);
    if (rc == ERR_OK)
        rc = block(rig, optim_in_bytes(rig->optim), &rig->in, err);
    if (rc == ERR_OK)
        rig->in_host = malloc(optim_in_bytes(rig->optim));
    fill(7, rig->numbers);
    if (rc == ERR_OK)
        rc = dev_copy(rig->stream, rig->params, rig->numbers, bytes,
                      DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = optim_start(rig->optim, rig->params, rig->stream, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(rig->stream, err);
    return rc;
}

void place_rig_open(place_rig_t *rig, const char *backend, int index,
                    const place_config_t *config)
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_open(backend, index, &dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(place_rig_try(rig, dev, config, &err), ERR_OK, "%s", err.text);
}

void place_rig_close(place_rig_t *rig)
{
    optim_close(rig->optim);
    dev_free(rig->dev, rig->params);
    dev_free(rig->dev, rig->grads);
    dev_free(rig->dev, rig->step);
    dev_free(rig->dev, rig->in);
    dev_stream_close(rig->stream);
    free(rig->in_host);
    free(rig->numbers);
}

/* ---- a step -------------------------------------------------------------- */

void place_rig_grads(size_t elems, int64_t number, float *out)
{
    memset(out, 0, elems * sizeof *out);
    fill(100 + (uint64_t)number, out);
}

void place_rig_case(place_rig_t *rig, int64_t number)
{
    rig->step_host = (place_step_t){
        .about = {.counts = 1, .weights = {1, 0.5}, .denominators = {64, 32}},
        .sums = {17.5, 3, 4.25, 5}};
    optim_in_fill(rig->optim, 0.01 / (double)number, number, rig->in_host);
}

err_code_t place_rig_write(place_rig_t *rig, err_t *err)
{
    err_code_t rc = dev_copy(rig->stream, rig->step, &rig->step_host,
                             sizeof *rig->step, DEV_HOST_TO_DEV, err);

    return rc == ERR_OK
               ? dev_copy(rig->stream, rig->in, rig->in_host,
                          optim_in_bytes(rig->optim), DEV_HOST_TO_DEV, err)
               : rc;
}

err_code_t place_rig_compute(place_rig_t *rig, err_t *err)
{
    optim_place_t *place = optim_place(rig->optim);
    const optim_question_t question = {.about = &rig->step->about,
                                       .failed = &rig->step->failed,
                                       .sums = rig->step->sums,
                                       .losses = PLACE_LOSSES,
                                       .stride = 2,
                                       .limit = rig->config.limit};
    const optim_args_t args = {.params = rig->params,
                               .grads = rig->grads,
                               .in = rig->in,
                               .verdict = &rig->step->verdict};
    err_code_t rc = optim_mask(rig->optim, rig->grads, rig->stream, err);

    if (rc == ERR_OK)
        rc = optim_norm(place, rig->grads, PLACE_ELEMS,
                        &rig->step->verdict.norm, rig->stream, err);
    if (rc == ERR_OK)
        rc = optim_judge(place, &question, &rig->step->verdict, rig->stream,
                         err);
    return rc == ERR_OK ? optim_step(rig->optim, &args, rig->stream, err) : rc;
}

err_code_t place_rig_read(place_rig_t *rig, err_t *err)
{
    return dev_copy(rig->stream, &rig->verdict, &rig->step->verdict,
                    sizeof rig->verdict, DEV_DEV_TO_HOST, err);
}

err_code_t place_rig_step(place_rig_t *rig, int64_t number, err_t *err)
{
    err_code_t rc;

    place_rig_grads(PLACE_ELEMS, number, rig->numbers);
    place_rig_case(rig, number);
    rc = dev_copy(rig->stream, rig->grads, rig->numbers,
                  PLACE_ELEMS * sizeof(float), DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = place_rig_write(rig, err);
    if (rc == ERR_OK)
        rc = place_rig_compute(rig, err);
    if (rc == ERR_OK)
        rc = place_rig_read(rig, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(rig->stream, err);
    return rc;
}

/* ---- comparing ----------------------------------------------------------- */

static void arena_same(place_rig_t *a, place_rig_t *b, const float *in_a,
                       const float *in_b, size_t elems, const char *what,
                       const char *name)
{
    uint32_t *x = malloc(elems * sizeof *x + 1);
    uint32_t *y = malloc(elems * sizeof *y + 1);
    size_t i = 0;

    place_rig_get(a, x, in_a, elems * sizeof *x);
    place_rig_get(b, y, in_b, elems * sizeof *y);
    while (i < elems && x[i] == y[i])
        i++;
    cr_assert_eq(i, elems, "%s on %s: element %zu of %s is %08x, not %08x",
                 what, dev_name(a->dev), i, name, x[i], y[i]);
    free(y);
    free(x);
}

void place_rig_same(place_rig_t *a, place_rig_t *b, const char *what)
{
    const int slots = optim_slots(a->optim);
    const size_t bytes = optim_state_bytes(a->optim);

    cr_assert_eq(slots, optim_slots(b->optim));
    cr_assert_eq(bytes, optim_state_bytes(b->optim));
    arena_same(a, b, a->params, b->params, PLACE_ELEMS, what, "the parameters");
    for (int s = 0; s < slots; s++)
        arena_same(a, b, optim_slot_data(a->optim, s),
                   optim_slot_data(b->optim, s),
                   bytes / (size_t)slots / sizeof(float), what,
                   optim_slot_name(a->optim, s));
    cr_assert_arr_eq(&a->verdict.norm, &b->verdict.norm, sizeof(double),
                     "%s on %s: the norm is %a, not %a", what, dev_name(a->dev),
                     a->verdict.norm, b->verdict.norm);
    cr_assert_arr_eq(&a->verdict.loss, &b->verdict.loss, sizeof(double), "%s",
                     what);
    cr_assert_arr_eq(&a->verdict.factor, &b->verdict.factor, sizeof(float),
                     "%s", what);
    cr_assert_eq(a->verdict.sound, b->verdict.sound, "%s", what);
    cr_assert_eq(a->verdict.updates, b->verdict.updates, "%s", what);
}
