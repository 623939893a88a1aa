/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reducer over 1 to 7 ranks that are threads. After a step the arena has
 * the sums over ranks, with equal bits on all ranks, for any order in which
 * gradients become ready, and also if a rank has no samples.
 */
#include "ddp/ddp.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lib/ranks.h"

#define VIEWS 9
/* elements of a view: 117 KiB, so that there are several buckets */
#define SIZE 30000
#define TAIL 5

typedef struct plan {
    int skipper;                 /* rank without samples; -1: none */
    int different;               /* rank with another layout; -1: none */
    bool backwards;              /* odd ranks report views in reverse order */
    float (*sums)[VIEWS * SIZE]; /* results of each rank, to be compared */
} plan_t;

static ddp_layout_t layout_make(ddp_view_t *views, int odd)
{
    for (int v = 0; v < VIEWS; v++)
        views[v] = (ddp_view_t){.name = v == odd ? "other" : "same",
                                .offset = (size_t)v * SIZE,
                                .count = SIZE - 3};
    return (ddp_layout_t){.views = views,
                          .view_count = VIEWS,
                          .grad_elems = VIEWS * SIZE,
                          .tail_doubles = TAIL};
}

static err_code_t group_make(const comm_oob_t *oob, comm_group_t **group,
                             err_t *err)
{
    comm_config_t config = {.backend = oob->size == 1 ? "self" : "threads",
                            .timeout = 20.0};

    return comm_group_open(&config, oob, group, err);
}

static float value(int rank, int step, size_t i)
{
    return (float)((rank + 1) * (step + 1)) + 0.001f * (float)(i % 1000);
}

static void fill(ddp_t *ddp, int rank, int step)
{
    float *grads = ddp_grads(ddp);

    for (int v = 0; v < VIEWS; v++)
        for (size_t i = 0; i < SIZE - 3; i++)
            grads[(size_t)v * SIZE + i] = value(rank, step, i);
    for (int t = 0; t < TAIL; t++)
        ddp_tail(ddp)[t] = rank + 10.0 * t;
}

static int step_run(ddp_t *ddp, const comm_oob_t *oob, const plan_t *plan,
                    int step)
{
    bool reverse = plan->backwards && oob->rank % 2 == 1;
    err_t err = ERR_INIT;

    ddp_step_begin(ddp, NULL);
    fill(ddp, oob->rank, step);
    if (plan->skipper != oob->rank)
        for (int v = 0; v < VIEWS; v++)
            RANKS_OK(ddp_grad_ready(ddp, reverse ? VIEWS - 1 - v : v, &err),
                     err);
    RANKS_OK(ddp_step_skip(ddp, &err), err);
    RANKS_OK(ddp_step_wait(ddp, &err), err);
    return 0;
}

static int sums_check(ddp_t *ddp, const comm_oob_t *oob, const plan_t *plan,
                      int step)
{
    const float *grads = ddp_grads(ddp);
    size_t wrong = 0;

    for (size_t i = 0; i < SIZE; i++) {
        float expected = 0.0f;

        /* The last three elements of a view are padding. */
        for (int r = 0; r < oob->size && i < SIZE - 3; r++)
            if (r != plan->skipper)
                expected += value(r, step, i);
        for (size_t v = 0; v < VIEWS; v++)
            wrong +=
                !(fabsf(grads[v * SIZE + i] - expected) <= 1e-6f * expected);
    }
    RANKS_CHECK(wrong == 0);
    for (int t = 0; t < TAIL; t++)
        RANKS_CHECK(ddp_tail(ddp)[t] ==
                    oob->size * (oob->size - 1) / 2.0 + oob->size * 10.0 * t);
    return 0;
}

static int reduce_main(const comm_oob_t *oob, void *argument)
{
    const plan_t *plan = argument;
    ddp_config_t config = {
        .first_bucket_mb = 0.2, .bucket_cap_mb = 0.3, .last_bucket_mb = 0.2};
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views, -1);
    comm_group_t *group = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    RANKS_CHECK(ddp_buckets(ddp) > 3);
    for (int step = 0; step < 3; step++) {
        if (step_run(ddp, oob, plan, step) != 0)
            return 1;
        if (sums_check(ddp, oob, plan, step) != 0)
            return 1;
    }
    RANKS_CHECK(ddp_stats_take(ddp).bytes > 0);
    RANKS_CHECK(ddp_stats_take(ddp).bytes == 0);
    memcpy(plan->sums[oob->rank], ddp_grads(ddp), sizeof *plan->sums);
    ddp_close(ddp);
    comm_group_close(group);
    return 0;
}

static void reduce_ranks(int count, plan_t plan)
{
    plan.sums = malloc((size_t)count * sizeof *plan.sums);
    cr_assert_eq(ranks_threads(count, reduce_main, &plan), 0);
    for (int r = 1; r < count; r++)
        cr_assert_eq(memcmp(plan.sums[0], plan.sums[r], sizeof *plan.sums), 0,
                     "rank %d of %d has other bits", r, count);
    free(plan.sums);
}

Test(ddp, sums_are_exact_and_the_same_on_every_rank)
{
    for (int n = 1; n <= 7; n++)
        reduce_ranks(n, (plan_t){.skipper = -1});
}

Test(ddp, gradients_may_become_ready_in_any_order)
{
    reduce_ranks(4, (plan_t){.skipper = -1, .backwards = true});
}

Test(ddp, a_rank_without_samples_joins_with_zeros)
{
    reduce_ranks(3, (plan_t){.skipper = 2});
    reduce_ranks(2, (plan_t){.skipper = 0});
}

/* All ranks but one open the same layout. */
static int layout_main(const comm_oob_t *oob, void *argument)
{
    const plan_t *plan = argument;
    ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};
    ddp_view_t views[VIEWS];
    ddp_layout_t layout =
        layout_make(views, oob->rank == plan->different ? 3 : -1);
    comm_group_t *group = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_CHECK(ddp_open(&config, group, group, &layout, &ddp, &err) ==
                ERR_CONFIG);
    RANKS_CHECK(ddp == NULL);
    RANKS_CHECK(strstr(err.text, "parameter layout of rank 2") != NULL);
    comm_group_close(group);
    return 0;
}

Test(ddp, another_layout_is_found_on_every_rank)
{
    plan_t plan = {.different = 2};

    cr_assert_eq(ranks_threads(4, layout_main, &plan), 0);
}

static int broadcast_main(const comm_oob_t *oob, void *argument)
{
    ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views, -1);
    comm_group_t *group = NULL;
    ddp_t *ddp = NULL;
    float state[100];
    err_t err = ERR_INIT;

    (void)argument;
    for (int i = 0; i < 100; i++)
        state[i] = (float)(oob->rank * 100 + i);
    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    RANKS_OK(ddp_broadcast(ddp, state, sizeof state, &err), err);
    for (int i = 0; i < 100; i++)
        RANKS_CHECK(state[i] == (float)i);
    ddp_close(ddp);
    comm_group_close(group);
    return 0;
}

Test(ddp, the_initial_state_is_rank_zeros)
{
    cr_assert_eq(ranks_threads(5, broadcast_main, NULL), 0);
}

/* One rank's copy has a flipped bit; every rank reports which rank it is. */
static int drift_main(const comm_oob_t *oob, void *argument)
{
    const plan_t *plan = argument;
    ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views, -1);
    comm_group_t *group = NULL;
    ddp_t *ddp = NULL;
    float state[100] = {1.0f, 2.0f};
    err_t err = ERR_INIT;

    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    RANKS_OK(ddp_replica_check(ddp, hash_bytes(state, sizeof state), &err),
             err);
    if (oob->rank == plan->different)
        ((unsigned char *)state)[57] ^= 4;
    RANKS_CHECK(ddp_replica_check(ddp, hash_bytes(state, sizeof state), &err) ==
                ERR_DIVERGED);
    RANKS_CHECK(err.culprit == plan->different);
    RANKS_CHECK(strstr(err.text, "suspect its memory") != NULL);
    ddp_close(ddp);
    comm_group_close(group);
    return 0;
}

Test(ddp, the_rank_whose_weights_drifted_is_named)
{
    for (int different = 0; different < 4; different++) {
        plan_t plan = {.different = different};

        cr_assert_eq(ranks_threads(4, drift_main, &plan), 0);
    }
}

/* ---- local steps --------------------------------------------------------- */

/* Number of gradient elements that still have this rank's own values (0 if it
 * is [idle]). */
static size_t own_count(ddp_t *ddp, int rank, int step, bool idle)
{
    size_t count = 0;

    for (size_t v = 0; v < VIEWS; v++)
        for (size_t i = 0; i < SIZE - 3; i++)
            count += ddp_grads(ddp)[v * SIZE + i] ==
                     (idle ? 0.0f : value(rank, step, i));
    return count;
}

/* In odd steps the tail is summed, but gradients are not. */
static int local_main(const comm_oob_t *oob, void *argument)
{
    ddp_config_t config = {
        .first_bucket_mb = 0.2, .bucket_cap_mb = 0.3, .last_bucket_mb = 0.2};
    ddp_view_t views[VIEWS];
    ddp_layout_t layout = layout_make(views, -1);
    comm_group_t *group = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    for (int step = 0; step < 4; step++) {
        bool idle = oob->rank == 1;

        ddp_step_begin(ddp, NULL);
        if (step % 2 == 1)
            ddp_step_local(ddp);
        fill(ddp, oob->rank, step);
        for (int v = 0; !idle && v < VIEWS; v++)
            RANKS_OK(ddp_grad_ready(ddp, v, &err), err);
        RANKS_OK(ddp_step_skip(ddp, &err), err);
        RANKS_OK(ddp_step_wait(ddp, &err), err);
        RANKS_CHECK(step % 2 == 0 || own_count(ddp, oob->rank, step, idle) ==
                                         VIEWS * (SIZE - 3));
        RANKS_CHECK(ddp_tail(ddp)[1] ==
                    oob->size * (oob->size - 1) / 2.0 + oob->size * 10.0);
        RANKS_CHECK((ddp_stats_take(ddp).bytes > TAIL * 8) == (step % 2 == 0));
    }
    ddp_close(ddp);
    comm_group_close(group);
    return 0;
}

Test(ddp, gradients_of_local_steps_stay)
{
    for (int n = 1; n <= 4; n++)
        cr_assert_eq(ranks_threads(n, local_main, NULL), 0);
}
