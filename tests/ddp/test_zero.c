/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ZeRO-1 in the reducer, for any number of ranks: how the arena is cut; a
 * rank's own ranges get the sums of a run without shards, bit for bit; and
 * what owners store reaches all ranks.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ddp/bucket.h"
#include "ddp/ddp.h"
#include "lib/ranks.h"

#define VIEWS 9
#define SIZE 3001
/* distance of views in elements, with padding after each */
#define STRIDE 3008
#define ELEMS ((size_t)VIEWS * STRIDE)
#define UNIT 256
#define TAIL 3

static const ddp_config_t config = {
    .first_bucket_mb = 0.012, .bucket_cap_mb = 0.03, .last_bucket_mb = 0.012};

static ddp_layout_t layout_make(ddp_view_t *views)
{
    for (int v = 0; v < VIEWS; v++)
        views[v] = (ddp_view_t){
            .name = "w", .offset = (size_t)v * STRIDE, .count = SIZE};
    return (ddp_layout_t){.views = views,
                          .view_count = VIEWS,
                          .grad_elems = ELEMS,
                          .tail_doubles = TAIL};
}

/* ---- the cut ------------------------------------------------------------- */

static void cut_check(int size, size_t unit)
{
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views);
    ddp_bucket_t buckets[VIEWS];
    ddp_shards_t *shards = NULL;
    size_t at = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(ddp_shards_open(&config, &layout, size, unit, &shards, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(ddp_shards_buckets(shards),
                 ddp_bucket_cut(&config, &layout, buckets));
    for (int b = 0; b < ddp_shards_buckets(shards); b++) {
        view_range_t whole = ddp_shards_whole(shards, b);
        size_t least = whole.count, most = 0;

        cr_expect_eq(whole.first, at);
        cr_expect_leq(whole.first + whole.count,
                      buckets[b].offset + buckets[b].count,
                      "bucket %d sends what is not ready", b);
        for (int r = 0; r < size; r++) {
            view_range_t mine = ddp_shards_range(shards, b, r);

            cr_expect_eq(mine.first, at);
            cr_expect_eq(mine.first,
                         whole.first + ddp_shards_cuts(shards, b)[r]);
            cr_expect(mine.count == 0 || mine.first % unit == 0 || b == 0);
            at += mine.count;
            cr_expect(at % unit == 0 || at == ELEMS);
            least = mine.count < least ? mine.count : least;
            most = mine.count > most ? mine.count : most;
        }
        cr_expect_leq(most - least, 2 * unit);
    }
    cr_expect_eq(at, ELEMS);
    ddp_shards_close(shards);
}

Test(zero, shards_cover_the_arena_once_and_evenly)
{
    for (int size = 1; size <= 33; size++)
        for (size_t unit = 1; unit <= ELEMS; unit *= 4)
            cut_check(size, unit);
}

/* ---- a step -------------------------------------------------------------- */

typedef struct shared {
    int skipper;  /* rank without samples; -1: none */
    bool reverse; /* odd ranks report views in reverse order */
    const char *backend;

} shared_t;

static float value(int rank, int step, size_t i)
{
    return 0.37f * (float)(rank + 1) + 0.001f * (float)(i % 977) +
           0.01f * (float)step;
}

static int backward(ddp_t *ddp, const comm_oob_t *oob, const shared_t *shared,
                    int step)
{
    bool reverse = shared->reverse && oob->rank % 2 == 1;
    float *grads = ddp_grads(ddp);
    err_t err = ERR_INIT;

    ddp_step_begin(ddp, NULL);
    for (int t = 0; t < TAIL; t++)
        ddp_tail(ddp)[t] = oob->rank + t;
    for (int i = 0; shared->skipper != oob->rank && i < VIEWS; i++) {
        int v = reverse ? VIEWS - 1 - i : i;

        for (size_t k = 0; k < SIZE; k++)
            grads[(size_t)v * STRIDE + k] = value(oob->rank, step, k + i % 2);
        RANKS_OK(ddp_grad_ready(ddp, v, &err), err);
    }
    RANKS_OK(ddp_step_skip(ddp, &err), err);
    RANKS_OK(ddp_step_wait(ddp, &err), err);
    for (int t = 0; t < TAIL; t++)
        RANKS_CHECK(ddp_tail(ddp)[t] ==
                    oob->size * (oob->size - 1) / 2.0 + oob->size * t);
    return 0;
}

/* Set the other ranks' ranges to -7 and this rank's own ranges to twice the
 * gradients, then share all ranges. */
static int share_round(ddp_t *ddp, const ddp_shards_t *shards, int rank,
                       float *params)
{
    err_t err = ERR_INIT;

    for (size_t i = 0; i < ELEMS; i++)
        params[i] = -7;
    for (int b = 0; b < ddp_shards_buckets(shards); b++) {
        view_range_t mine = ddp_shards_range(shards, b, rank);

        for (size_t i = mine.first; i < mine.first + mine.count; i++)
            params[i] = 2 * ddp_grads(ddp)[i];
        RANKS_OK(ddp_share(ddp, b, params, NULL, &err), err);
    }
    RANKS_OK(ddp_share_wait(ddp, &err), err);
    return 0;
}

static int steps_run(comm_group_t *group, const comm_oob_t *oob,
                     shared_t *shared)
{
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views);
    float *params = malloc(ELEMS * sizeof *params);
    ddp_shards_t *shards = NULL;
    ddp_t *plain = NULL, *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(ddp_open(&config, group, group, &layout, &plain, &err), err);
    RANKS_OK(ddp_shards_open(&config, &layout, oob->size, UNIT, &shards, &err),
             err);
    layout.shards = shards;
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    for (int step = 0; step < 3; step++) {
        if (backward(plain, oob, shared, step) != 0 ||
            backward(ddp, oob, shared, step) != 0 ||
            share_round(ddp, shards, oob->rank, params) != 0)
            return 1;
        for (size_t i = 0; i < ELEMS; i++)
            RANKS_CHECK(params[i] == 2 * ddp_grads(plain)[i]);
        RANKS_CHECK(params[SIZE] == 0);
    }
    /* The arena of the gradients can be shared as well. */
    for (int b = 0; b < ddp_shards_buckets(shards); b++)
        RANKS_OK(ddp_share(ddp, b, ddp_grads(ddp), NULL, &err), err);
    RANKS_OK(ddp_share_wait(ddp, &err), err);
    RANKS_CHECK(
        memcmp(ddp_grads(ddp), ddp_grads(plain), sizeof(float[ELEMS])) == 0);
    RANKS_CHECK(ddp_stats_take(ddp).bytes > 0);
    ddp_close(ddp);
    ddp_shards_close(shards);
    ddp_close(plain);
    free(params);
    return 0;
}

static int step_main(const comm_oob_t *oob, void *argument)
{
    shared_t *shared = argument;
    comm_config_t comm = {.backend = oob->size == 1 ? "self" : shared->backend,
                          .timeout = 20.0};
    comm_group_t *group = NULL;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(comm_group_open(&comm, oob, &group, &err), err);
    failed = steps_run(group, oob, shared);
    comm_group_close(group);
    return failed;
}

Test(zero, own_ranges_have_the_sums_and_all_get_the_result)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 17};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        cr_expect_eq(
            ranks_threads(sizes[i], step_main,
                          &(shared_t){.skipper = -1, .backend = "threads"}),
            0, "%d ranks", sizes[i]);
}

Test(zero, gradients_may_become_ready_in_any_order)
{
    cr_expect_eq(
        ranks_threads(
            4, step_main,
            &(shared_t){.skipper = -1, .reverse = true, .backend = "threads"}),
        0);
}

Test(zero, a_rank_without_samples_joins_with_zeros)
{
    cr_expect_eq(ranks_threads(3, step_main,
                               &(shared_t){.skipper = 1, .backend = "threads"}),
                 0);
}

Test(zero, processes_share_as_threads_do)
{
    static const int sizes[] = {2, 4};
    int results[RANKS_MAX];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        cr_expect_eq(ranks_forks(sizes[i], 60, step_main,
                                 &(shared_t){.skipper = -1, .backend = "ucx"},
                                 results),
                     0, "%d ranks", sizes[i]);
}
