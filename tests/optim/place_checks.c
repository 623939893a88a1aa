/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/place_checks.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const optimizers[] = {
    "sgd: {lr: 0.1}",
    "sgd: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
    "sgd: {lr: 0.1, momentum: 0.9, dampening: 0.5}",
    "adam: {weight_decay: 0.1}",
    "adamw: {lr: 0.01}",
    "adamw: {lr: 0.01, beta2: 0.5, amsgrad: true}",
    "rmsprop: {lr: 0.01, weight_decay: 0.01}",
    "rmsprop: {momentum: 0.9}",
    "rmsprop: {centered: true}",
    "rmsprop: {momentum: 0.9, centered: true}",
    "lamb: {lr: 0.01}",
    "lamb: {lr: 0.01, adapt_vectors: true}",
    "lars: {lr: 0.5, weight_decay: 0.001}",
    "lars: {lr: 0.5, trust: 0.01, adapt_vectors: true}",
};

#define OPTIMIZERS (int)(sizeof optimizers / sizeof optimizers[0])

#define GROUPS                                                         \
    ", groups: [{match: ['*.bias'], weight_decay: 0, lr_scale: 0.5}, " \
    "{match: [b.bias], freeze: true}]"

static void expect_ok(err_code_t rc, const err_t *err)
{
    cr_assert_eq(rc, ERR_OK, "%s", err->text);
}

static void opened(place_rig_t *rig, const place_t *place,
                   const place_config_t *config)
{
    place_rig_open(rig, place->backend, place->index, config);
}

static void closed(place_rig_t *rig)
{
    dev_device_t *dev = rig->dev;

    place_rig_close(rig);
    dev_close(dev);
}

static const place_t host = {"cpu", 0};

/* ---- updates ------------------------------------------------------------- */

/* Run [config] on [place] and on the host. */
static void compare(const place_t *place, const place_config_t *config)
{
    place_rig_t far, cpu;
    err_t err = ERR_INIT;

    opened(&far, place, config);
    opened(&cpu, &host, config);
    for (int number = 1; number <= 4; number++) {
        expect_ok(place_rig_step(&far, number, &err), &err);
        expect_ok(place_rig_step(&cpu, number, &err), &err);
        cr_assert(cpu.verdict.updates);
        place_rig_same(&far, &cpu, config->optimizer);
    }
    closed(&cpu);
    closed(&far);
}

void place_check_updates(const place_t *place)
{
    for (int k = 0; k < OPTIMIZERS; k++) {
        const place_config_t plain = {.optimizer = optimizers[k]};
        place_config_t config = {.decay = 0.9, .limit = 2.5, .most = 0.01};
        char text[400];

        compare(place, &plain);
        snprintf(text, sizeof text, "%s%s", optimizers[k], GROUPS);
        config.optimizer = text;
        compare(place, &config);
    }
}

void place_check_groups(const place_t *place)
{
    static const char *const all[] = {
        "sgd: {lr: 0.1}, groups: [{match: ['*.bias'], momentum: 0.9}]",
        "adam: , groups: [{match: ['b.*'], amsgrad: true}]",
        ("rmsprop: , groups: [{match: ['a.*'], centered: true}, "
         "{match: [c.weight], momentum: 0.5}]"),
        "lamb: , groups: [{match: ['*.bias'], adapt_vectors: true}]",
        "lars: , groups: [{match: [b.weight], trust: 0.5, lr_scale: 2}]"};

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        compare(place, &(place_config_t){.optimizer = all[k], .decay = 0.5});
}

/* A rank's ranges, the sums of which the test does not add up: the other
 * ranks' are 0. */
void place_check_ranges(const place_t *place)
{
    static const view_range_t ranges[] = {
        {OPTIM_UNIT, (size_t)2 * OPTIM_UNIT},
        {(size_t)3 * OPTIM_UNIT, 0},
        {(size_t)4 * OPTIM_UNIT, OPTIM_UNIT},
        {(size_t)6 * OPTIM_UNIT, OPTIM_UNIT - 100}};

    for (int k = 0; k < OPTIMIZERS; k++) {
        place_config_t config = {.ranges = ranges,
                                 .range_count = 4,
                                 .decay = 0.9,
                                 .limit = 2.5,
                                 .most = 0.01};
        char text[400];

        snprintf(text, sizeof text, "%s%s", optimizers[k], GROUPS);
        config.optimizer = text;
        compare(place, &config);
    }
}

/* ---- steps without an update --------------------------------------------- */

typedef void spoil_t(place_rig_t *rig);

static void spoil_failed(place_rig_t *rig)
{
    rig->step_host.failed = 1;
}

static void spoil_counts(place_rig_t *rig)
{
    rig->step_host.about.counts = 0;
}

static void spoil_loss(place_rig_t *rig)
{
    rig->step_host.sums[2] = (double)NAN;
}

static void spoil_loss_infinite(place_rig_t *rig)
{
    rig->step_host.sums[0] = -HUGE_VAL;
}

static void spoil_grads(place_rig_t *rig)
{
    const float bad = NAN;

    place_rig_put(rig, rig->grads + PLACE_ELEMS - 1, &bad, sizeof bad);
}

/* Not spoilt: these numbers are not read. */
static void spoil_unread(place_rig_t *rig)
{
    rig->step_host.sums[1] = (double)NAN;
    rig->step_host.sums[2] = (double)NAN;
    rig->step_host.about.weights[1] = 0;
    rig->step_host.about.denominators[0] = 0;
    rig->step_host.sums[0] = (double)NAN;
}

typedef struct spoilt {
    const char *what;
    spoil_t *spoil;
    bool sound, updates;
} spoilt_t;

static const spoilt_t spoilts[] = {
    {"a rank failed", spoil_failed, false, false},
    {"no target counts", spoil_counts, true, false},
    {"a loss is NaN", spoil_loss, false, false},
    {"a loss is infinite", spoil_loss_infinite, false, false},
    {"a gradient is NaN", spoil_grads, false, false},
    {"NaN that is not read", spoil_unread, true, true},
};

static void step_spoilt(place_rig_t *rig, const spoilt_t *spoilt)
{
    err_t err = ERR_INIT;

    place_rig_case(rig, 2);
    spoilt->spoil(rig);
    expect_ok(place_rig_write(rig, &err), &err);
    expect_ok(place_rig_compute(rig, &err), &err);
    expect_ok(place_rig_read(rig, &err), &err);
    expect_ok(dev_stream_wait(rig->stream, &err), &err);
    cr_expect_eq(rig->verdict.sound, spoilt->sound, "%s", spoilt->what);
    cr_expect_eq(rig->verdict.updates, spoilt->updates, "%s", spoilt->what);
}

/* After a step without an update, the state is that of a rig without it. */
static void check_spoilt(const place_t *place, const char *optimizer,
                         const spoilt_t *spoilt)
{
    const place_config_t config = {
        .optimizer = optimizer, .decay = 0.9, .limit = 1, .most = 0.1};
    place_rig_t with, without;
    err_t err = ERR_INIT;

    opened(&with, place, &config);
    opened(&without, place, &config);
    expect_ok(place_rig_step(&with, 1, &err), &err);
    expect_ok(place_rig_step(&without, 1, &err), &err);
    step_spoilt(&with, spoilt);
    without.verdict = with.verdict;
    if (!spoilt->updates)
        place_rig_same(&with, &without, spoilt->what);
    closed(&without);
    closed(&with);
}

void place_check_verdicts(const place_t *place)
{
    for (size_t k = 0; k < sizeof spoilts / sizeof spoilts[0]; k++) {
        check_spoilt(place, "adamw: ", &spoilts[k]);
        check_spoilt(place, "lamb: ", &spoilts[k]);
        check_spoilt(place, "lars: ", &spoilts[k]);
    }
}

/* ---- norms --------------------------------------------------------------- */

/* Lengths with partial blocks, full trees, several levels, and more blocks than
 * one pass of a place may take. */
static const size_t lengths[] = {
    0, 1, 7, 4095, 4096, 4097, 12288, 100000, 262144 + 3, 4096 * 300 + 5, 0};

enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef struct norms {
    double whole[LENGTHS], parts, flags[3];
    float scaled[3];
} norms_t;

static size_t norm_length(int k)
{
    return k == LENGTHS - 1 ? (size_t)4096 * 2100 + 77 : lengths[k];
}

/* Norms of parts of [at], memory of the device. [out], too. */
static void norms_take(place_rig_t *rig, optim_place_t *place, float *at,
                       double *blocks, norms_t *out)
{
    const size_t elems = norm_length(LENGTHS - 2);
    const size_t half = (elems / 2) / OPTIM_UNIT * OPTIM_UNIT;
    const view_range_t parts[] = {{half, elems - half}, {0, half}};
    err_t err = ERR_INIT;

    for (int k = 0; k < LENGTHS; k++)
        expect_ok(optim_norm(place, at, norm_length(k), &out->whole[k],
                             rig->stream, &err),
                  &err);
    for (int k = 0; k < 2; k++)
        expect_ok(
            optim_norm_part(place, at, parts[k], blocks, rig->stream, &err),
            &err);
    expect_ok(optim_norm_whole(place, blocks, optim_norm_blocks(elems),
                               &out->parts, rig->stream, &err),
              &err);
    expect_ok(optim_norm_flag(place, &out->whole[1], &out->flags[0],
                              rig->stream, &err),
              &err);
    expect_ok(optim_scale(place, at, 3, 1.0f / 3, rig->stream, &err), &err);
    expect_ok(dev_copy(rig->stream, out->scaled, at, sizeof out->scaled,
                       DEV_DEV_TO_DEV, &err),
              &err);
    expect_ok(optim_scale(place, at, 1, INFINITY, rig->stream, &err), &err);
    expect_ok(optim_norm(place, at, 1, &out->flags[2], rig->stream, &err),
              &err);
    expect_ok(optim_norm_flag(place, &out->flags[2], &out->flags[1],
                              rig->stream, &err),
              &err);
}

static norms_t norms_on(const place_t *place, const float *numbers)
{
    const place_config_t config = {.optimizer = "sgd: "};
    const size_t most = norm_length(LENGTHS - 1);
    void *at = NULL, *blocks = NULL, *out = NULL;
    norms_t found = {.parts = 0};
    place_rig_t rig;
    optim_place_t *own = NULL;
    err_t err = ERR_INIT;

    opened(&rig, place, &config);
    expect_ok(dev_alloc(rig.dev, most * sizeof(float), "a", &at, &err), &err);
    expect_ok(dev_alloc(rig.dev, optim_norm_blocks(most) * sizeof(double), "b",
                        &blocks, &err),
              &err);
    expect_ok(dev_alloc(rig.dev, sizeof found, "c", &out, &err), &err);
    place_rig_put(&rig, at, numbers, most * sizeof(float));
    expect_ok(optim_place_open(rig.dev, most, &own, &err), &err);
    norms_take(&rig, own, at, blocks, out);
    place_rig_get(&rig, &found, out, sizeof found);
    optim_place_close(own);
    dev_free(rig.dev, out);
    dev_free(rig.dev, blocks);
    dev_free(rig.dev, at);
    closed(&rig);
    return found;
}

/* More sums of blocks than two levels of chunks hold on a GPU. */
static double norm_of_many(const place_t *place)
{
    const size_t count = (size_t)2048 * 2048 + 3;
    const place_config_t config = {.optimizer = "sgd: "};
    double *sums = malloc(count * sizeof *sums), norm;
    void *at = NULL, *out = NULL;
    optim_place_t *own = NULL;
    place_rig_t rig;
    err_t err = ERR_INIT;

    for (size_t i = 0; i < count; i++)
        sums[i] = (double)((i * 2654435761U) % 1000003) * 1e-3;
    opened(&rig, place, &config);
    expect_ok(optim_place_open(rig.dev, count * OPTIM_UNIT, &own, &err), &err);
    expect_ok(dev_alloc(rig.dev, count * sizeof *sums, "a", &at, &err), &err);
    expect_ok(dev_alloc(rig.dev, sizeof norm, "b", &out, &err), &err);
    place_rig_put(&rig, at, sums, count * sizeof *sums);
    expect_ok(optim_norm_whole(own, at, count, out, rig.stream, &err), &err);
    place_rig_get(&rig, &norm, out, sizeof norm);
    optim_place_close(own);
    dev_free(rig.dev, at);
    dev_free(rig.dev, out);
    closed(&rig);
    free(sums);
    return norm;
}

void place_check_norms(const place_t *place)
{
    const size_t most = norm_length(LENGTHS - 1);
    float *numbers = malloc(most * sizeof *numbers);
    norms_t cpu, found;

    for (size_t i = 0; i < most; i++)
        numbers[i] = (float)((i * 2654435761U) % 1000003) * 0x1p-18f - 1.9f;
    cpu = norms_on(&host, numbers);
    cr_expect_eq(cpu.whole[0], 0);
    cr_expect_gt(cpu.whole[LENGTHS - 1], 1000);
    cr_expect_eq(cpu.parts, cpu.whole[LENGTHS - 2]);
    cr_expect_eq(cpu.flags[0], 0);
    cr_expect_eq(cpu.flags[1], 1);
    cr_expect_eq(cpu.scaled[2], numbers[2] * (1.0f / 3));
    found = norms_on(place, numbers);
    cr_expect_arr_eq(&found, &cpu, sizeof cpu, "%s", place->backend);
    cr_expect_eq(norm_of_many(place), norm_of_many(&host));
    free(numbers);
}

/* ---- replay -------------------------------------------------------------- */

const place_config_t place_full = {.optimizer = "lamb: {lr: 0.01}" GROUPS,
                                   .decay = 0.9,
                                   .limit = 2.5,
                                   .most = 0.01};

/* A captured step is launched with other gradients, rates and numbers. */
static void check_replay(const place_t *place, const char *optimizer)
{
    place_config_t config = place_full;
    dev_graph_t *graph = NULL;
    place_rig_t rig, cpu;
    float *grads = malloc(PLACE_ELEMS * sizeof *grads);
    err_t err = ERR_INIT;

    config.optimizer = optimizer;
    opened(&rig, place, &config);
    opened(&cpu, &host, &config);
    cr_assert(dev_can_capture(rig.dev));
    expect_ok(dev_capture_begin(rig.stream, &err), &err);
    expect_ok(place_rig_compute(&rig, &err), &err);
    expect_ok(dev_capture_end(rig.stream, &graph, &err), &err);
    for (int number = 1; number <= 4; number++) {
        place_rig_case(&rig, number);
        place_rig_grads(PLACE_ELEMS, number, grads);
        place_rig_put(&rig, rig.grads, grads, PLACE_ELEMS * sizeof *grads);
        expect_ok(place_rig_write(&rig, &err), &err);
        expect_ok(dev_graph_launch(graph, rig.stream, &err), &err);
        expect_ok(place_rig_read(&rig, &err), &err);
        expect_ok(dev_stream_wait(rig.stream, &err), &err);
        expect_ok(place_rig_step(&cpu, number, &err), &err);
        place_rig_same(&rig, &cpu, optimizer);
    }
    dev_graph_close(graph);
    free(grads);
    closed(&cpu);
    closed(&rig);
}

void place_check_replay(const place_t *place)
{
    check_replay(place, "adamw: " GROUPS);
    check_replay(place, place_full.optimizer);
    check_replay(place, "lars: ");
    check_replay(place, "sgd: {lr: 0.1, momentum: 0.9, dampening: 0.5}");
}
