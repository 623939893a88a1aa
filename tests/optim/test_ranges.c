/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An optimizer that keeps only ranges of the arena: however ranges are
 * distributed among ranks, parameters, state and average have the bits of an
 * optimizer that keeps all. Tested with every optimizer, with groups, frozen
 * parameters and clipping by norm.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conf/conf.h"
#include "optim/optim_rig.h"

#define UNITS 7
/* the last unit is incomplete */
#define ELEMS ((size_t)UNITS * OPTIM_UNIT - 100)
#define RANKS 3
#define STEPS 4
#define LIMIT 2.5

/* Views that begin and end anywhere in a unit, and some that span several
 * units. */
static const optim_view_t views[] = {
    {.name = "a.weight", .offset = 0, .count = 3000, .ndim = 2},
    {.name = "a.bias", .offset = 3008, .count = 40, .ndim = 1},
    {.name = "b.weight", .offset = 3056, .count = 15000, .ndim = 4},
    {.name = "b.bias", .offset = 18064, .count = 33, .ndim = 1},
    {.name = "c.weight", .offset = 18112, .count = 10460, .ndim = 2},
};

#define VIEWS (int)(sizeof views / sizeof views[0])

/* Rank that owns each unit: ranges alternate, and rank 2 has the fewest units.
 */
static const int owner[UNITS] = {0, 1, 1, 0, 2, 1, 0};

typedef struct rank {
    optim_t *optim;
    view_range_t ranges[UNITS];
    int range_count;
    float *params, *grads;
} rank_t;

static const char *const optimizers[] = {
    "sgd: {lr: 0.1}",
    "sgd: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
    "adam: {weight_decay: 0.1}",
    "adamw: {lr: 0.01}",
    "adamw: {lr: 0.01, beta2: 0.5, amsgrad: true}",
    "sgd: {lr: 0.1, momentum: 0.9, dampening: 0.5}",
    "rmsprop: {momentum: 0.9, centered: true}",
    "lamb: {lr: 0.01}",
    "lamb: {lr: 0.01, adapt_vectors: true}",
    "lars: {lr: 0.5, weight_decay: 0.001}",
};

#define GROUPS                                                               \
    "groups: [{match: ['*.bias'], weight_decay: 0, lr_scale: 0.5}, {match: " \
    "[b.bias], freeze: true}]"

/* A random number in [-0.5, 0.5) for element [i]. */
static float draw(uint64_t seed, size_t i)
{
    rng_t rng;

    rng_open(&rng, seed, 0, i, 0);
    return (float)(rng_uniform(&rng) - 0.5);
}

static void rank_open(rank_t *rank, const char *optimizer)
{
    const optim_ema_t ema = {.decay = 0.9};
    const optim_layout_t layout = {
        .dev = optim_rig_dev(),
        .views = views,
        .view_count = VIEWS,
        .elems = ELEMS,
        .ranges = rank->range_count > 0 ? rank->ranges : NULL,
        .range_count = rank->range_count};
    char text[512];
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    snprintf(text, sizeof text, "optimizer: {%s, %s}", optimizer, GROUPS);
    cr_assert_eq(conf_parse("o.yaml", text, &tree, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(optim_open(tree_get(tree, "optimizer"), &ema, &layout,
                            &rank->optim, &err),
                 ERR_OK, "%s", err.text);
    tree_free(tree);
    rank->params = calloc(ELEMS, sizeof(float));
    rank->grads = calloc(ELEMS, sizeof(float));
    for (int v = 0; v < VIEWS; v++)
        for (size_t i = 0; i < views[v].count; i++)
            rank->params[views[v].offset + i] = draw(7, views[v].offset + i);
    optim_rig_start(rank->optim, rank->params);
}

static void rank_close(rank_t *rank)
{
    optim_close(rank->optim);
    free(rank->params);
    free(rank->grads);
}

static void ranges_deal(rank_t ranks[RANKS])
{
    for (int unit = 0; unit < UNITS; unit++) {
        rank_t *rank = &ranks[owner[unit]];
        size_t first = (size_t)unit * OPTIM_UNIT;
        size_t left = ELEMS - first;

        if (unit > 0 && owner[unit - 1] == owner[unit])
            rank->ranges[rank->range_count - 1].count += OPTIM_UNIT;
        else
            rank->ranges[rank->range_count++] =
                (view_range_t){first, left < OPTIM_UNIT ? left : OPTIM_UNIT};
    }
}

static void gradients(float *grads, int step)
{
    for (int v = 0; v < VIEWS; v++)
        for (size_t i = 0; i < views[v].count; i++)
            grads[views[v].offset + i] =
                draw(100 + (uint64_t)step, views[v].offset + i);
}

static void whole_step(rank_t *all, int step)
{
    gradients(all->grads, step);
    optim_rig_mask(all->optim, all->grads);
    optim_rig_clip(all->grads, ELEMS, LIMIT, 0, 1);
    optim_rig_step(all->optim, all->params, all->grads, 0.01, step);
}

/* Sum the vectors of all ranks, each of which fills in only its own elements.
 */
static void add_up(double *const vectors[RANKS], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;

        for (int r = 0; r < RANKS; r++)
            sum += vectors[r][i];
        for (int r = 0; r < RANKS; r++)
            vectors[r][i] = sum;
    }
}

static double norm_share(rank_t ranks[RANKS])
{
    const size_t count = optim_norm_blocks(ELEMS);
    double *blocks[RANKS];
    double norm;
    err_t err = ERR_INIT;

    cr_assert_eq(count, UNITS);
    for (int r = 0; r < RANKS; r++) {
        optim_place_t *place = optim_place(ranks[r].optim);

        blocks[r] = calloc(count, sizeof *blocks[r]);
        optim_place_team(place, 2);
        for (int i = 0; i < ranks[r].range_count; i++)
            cr_assert_eq(optim_norm_part(place, ranks[r].grads,
                                         ranks[r].ranges[i], blocks[r],
                                         optim_rig_stream(), &err),
                         ERR_OK);
    }
    add_up(blocks, count);
    cr_assert_eq(optim_norm_whole(optim_place(ranks[0].optim), blocks[0], count,
                                  &norm, optim_rig_stream(), &err),
                 ERR_OK);
    for (int r = 0; r < RANKS; r++)
        free(blocks[r]);
    return norm;
}

static void updates_make(rank_t ranks[RANKS], const optim_verdict_t *verdict,
                         int step)
{
    optim_in_t *in = malloc(optim_in_bytes(ranks[0].optim));
    dev_stream_t *stream = optim_rig_stream();
    optim_args_t args[RANKS];
    double *sums[RANKS];
    size_t count;
    err_t err = ERR_INIT;

    optim_in_fill(ranks[0].optim, 0.01, step, in);
    for (int r = 0; r < RANKS; r++) {
        args[r] = (optim_args_t){.params = ranks[r].params,
                                 .grads = ranks[r].grads,
                                 .in = in,
                                 .verdict = verdict};
        cr_assert_eq(optim_prepare(ranks[r].optim, &args[r], stream, &err),
                     ERR_OK);
        sums[r] = optim_sums(ranks[r].optim, &count);
    }
    add_up(sums, count);
    for (int r = 0; r < RANKS; r++)
        for (int i = ranks[r].range_count - 1; i >= 0; i--)
            cr_assert_eq(optim_apply(ranks[r].optim, i, &args[r], stream, &err),
                         ERR_OK);
    free(in);
}

/* Elements that a rank does not own are set to a large number: no rank may read
 * them. */
static void shards_step(rank_t ranks[RANKS], int step)
{
    optim_verdict_t verdict;

    for (int r = 0; r < RANKS; r++) {
        gradients(ranks[r].grads, step);
        for (size_t i = 0; i < ELEMS; i++)
            if (owner[i / OPTIM_UNIT] != r)
                ranks[r].grads[i] = 1e30f;
        optim_rig_mask(ranks[r].optim, ranks[r].grads);
    }
    verdict = optim_rig_verdict(norm_share(ranks), LIMIT);
    cr_assert(verdict.updates);
    updates_make(ranks, &verdict, step);
}

static void expect_same(rank_t *all, rank_t ranks[RANKS], const char *name)
{
    float *average = calloc(ELEMS, sizeof *average);

    for (int r = 0; r < RANKS; r++)
        optim_rig_store(ranks[r].optim, average);
    cr_expect_arr_eq(average, optim_average(all->optim), ELEMS * sizeof(float),
                     "%s", name);
    for (size_t i = 0; i < ELEMS; i++) {
        rank_t *rank = &ranks[owner[i / OPTIM_UNIT]];

        cr_assert_eq(rank->params[i], all->params[i], "%s: parameter %zu", name,
                     i);
        for (int s = 0; s < optim_slots(all->optim); s++)
            cr_assert_eq(*optim_slot_at(rank->optim, s, i),
                         optim_slot_data(all->optim, s)[i], "%s: %s %zu", name,
                         optim_slot_name(all->optim, s), i);
    }
    free(average);
}

Test(ranges, change_no_bit_of_any_optimizer)
{
    for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++) {
        rank_t all = {0}, ranks[RANKS] = {{0}};

        ranges_deal(ranks);
        rank_open(&all, optimizers[k]);
        for (int r = 0; r < RANKS; r++)
            rank_open(&ranks[r], optimizers[k]);
        for (int step = 1; step <= STEPS; step++) {
            whole_step(&all, step);
            shards_step(ranks, step);
        }
        expect_same(&all, ranks, optimizers[k]);
        rank_close(&all);
        for (int r = 0; r < RANKS; r++)
            rank_close(&ranks[r]);
    }
}

Test(ranges, keep_only_their_share_of_the_state)
{
    rank_t all = {0}, ranks[RANKS] = {{0}};
    size_t sum = 0;

    ranges_deal(ranks);
    rank_open(&all, optimizers[2]);
    for (int r = 0; r < RANKS; r++) {
        rank_open(&ranks[r], optimizers[2]);
        sum += optim_state_bytes(ranks[r].optim);
        cr_expect_eq(optim_frozen(ranks[r].optim), 33);
    }
    cr_expect_eq(optim_state_bytes(all.optim), 3 * ELEMS * sizeof(float));
    cr_expect_eq(sum, optim_state_bytes(all.optim));
    cr_expect_eq(optim_state_bytes(ranks[2].optim),
                 (size_t)3 * OPTIM_UNIT * sizeof(float));
    cr_expect_null(optim_slot_at(ranks[2].optim, 0, 0));
    cr_expect_null(optim_average(ranks[2].optim));
    rank_close(&all);
    for (int r = 0; r < RANKS; r++)
        rank_close(&ranks[r]);
}

Test(ranges, may_be_none_at_all)
{
    const view_range_t none = {0};
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = views,
                                   .view_count = VIEWS,
                                   .elems = ELEMS,
                                   .ranges = &none};
    float *arena = calloc(ELEMS, sizeof *arena);
    optim_t *optim = NULL;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("o.yaml", "optimizer: lamb", &tree, &err), ERR_OK);
    cr_assert_eq(
        optim_open(tree_get(tree, "optimizer"), NULL, &layout, &optim, &err),
        ERR_OK, "%s", err.text);
    tree_free(tree);
    cr_expect_eq(optim_state_bytes(optim), 0);
    optim_rig_start(optim, arena);
    optim_rig_mask(optim, arena);
    optim_rig_step(optim, arena, arena, 1, 1);
    optim_close(optim);
    free(arena);
}
