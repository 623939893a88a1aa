/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/hook_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conf/conf.h"

#define TAIL 3

const view_t hook_views[HOOK_VIEWS] = {
    {.name = "out.bias", .offset = 0, .count = 40, .ndim = 1, .rows = 40},
    {.name = "out.weight",
     .offset = 48,
     .count = 40 * 64,
     .ndim = 2,
     .rows = 40},
    {.name = "norm.weight", .offset = 2624, .count = 15, .ndim = 1, .rows = 15},
    {.name = "small.weight", .offset = 2640, .count = 12, .ndim = 2, .rows = 3},
    {.name = "conv.weight",
     .offset = 2656,
     .count = 32 * 54,
     .ndim = 4,
     .rows = 32},
};

const char *const hook_halves[2] = {"hook: fp16", "hook: bf16"};

hook_plan_t *hook_plan_make(const char *hook, int steps)
{
    hook_plan_t *plan = calloc(1, sizeof *plan);

    cr_assert_not_null(plan);
    plan->hook = hook;
    plan->steps = steps;
    plan->skipper = -1;
    return plan;
}

void hook_fill(const hook_plan_t *plan, int rank, int step, float *grads)
{
    for (int v = 0; v < HOOK_VIEWS; v++) {
        size_t columns = hook_views[v].count / hook_views[v].rows;
        rng_t mine, all;

        rng_open(&mine, 11, RNG_INIT, (uint64_t)(rank * 1000 + step),
                 (uint64_t)v);
        rng_open(&all, 12, RNG_INIT, (uint64_t)step, (uint64_t)v);
        for (size_t r = 0; r < hook_views[v].rows; r++) {
            float u = (float)rng_normal(&mine);
            rng_t thin = all;

            for (size_t c = 0; c < columns; c++)
                grads[hook_views[v].offset + r * columns + c] =
                    plan->kind == HOOK_THIN     ? u * (float)rng_normal(&thin)
                    : plan->kind == HOOK_RANDOM ? (float)rng_normal(&mine)
                    : plan->until == 0 || step < plan->until ? plan->even
                                                             : 0.0f;
        }
    }
}

err_code_t hook_group_make(const comm_oob_t *oob, comm_group_t **group,
                           err_t *err)
{
    comm_config_t config = {.backend = oob->size == 1 ? "self" : "threads",
                            .timeout = 20.0};

    return comm_group_open(&config, oob, group, err);
}

static int step_run(ddp_t *ddp, const comm_oob_t *oob, hook_plan_t *plan,
                    int step)
{
    int rank = oob->rank;
    bool skip = rank == plan->skipper && step % 2 == 1;
    float *grads = ddp_grads(ddp);
    err_t err = ERR_INIT;

    ddp_step_begin(ddp, NULL);
    hook_fill(plan, rank, step, grads);
    for (int t = 0; t < TAIL; t++)
        ddp_tail(ddp)[t] = rank + 1e-9 * t;
    if (skip)
        memset(grads, 0, HOOK_ELEMS * sizeof *grads);
    memcpy(plan->last[rank], grads, sizeof plan->last[rank]);
    for (int i = 0; i < HOOK_ELEMS; i++)
        plan->given[rank][i] += grads[i];
    for (int v = 0; !skip && v < HOOK_VIEWS; v++)
        RANKS_OK(ddp_grad_ready(ddp, v, &err), err);
    RANKS_OK(ddp_step_skip(ddp, &err), err);
    RANKS_OK(ddp_step_wait(ddp, &err), err);
    for (int t = 0; t < TAIL; t++) {
        double tail = 0;

        for (int r = 0; r < oob->size; r++)
            tail += r + 1e-9 * t;
        RANKS_CHECK(fabs(ddp_tail(ddp)[t] - tail) < 1e-12);
    }
    for (int i = 0; rank == 0 && i < HOOK_ELEMS; i++)
        plan->used[i] += grads[i];
    return 0;
}

static void rests_note(ddp_t *ddp, hook_plan_t *plan, int rank)
{
    ddp_hook_part_t parts[DDP_HOOK_PARTS];
    int count = ddp_hook_parts(ddp, parts);

    for (int p = 0; p < count; p++)
        for (size_t i = 0;
             strcmp(parts[p].name, "residual") == 0 && i < HOOK_ELEMS; i++)
            plan->rests[rank][i] = parts[p].data[i];
}

static int hook_main(const comm_oob_t *oob, void *argument)
{
    hook_plan_t *plan = argument;
    ddp_config_t config = {.first_bucket_mb = 0.002,
                           .bucket_cap_mb = 0.011,
                           .last_bucket_mb = 0.001,
                           .hooks = plan->hooks};
    ddp_layout_t layout = {.views = hook_views,
                           .view_count = HOOK_VIEWS,
                           .grad_elems = HOOK_ELEMS,
                           .tail_doubles = TAIL};
    comm_group_t *group = NULL;
    tree_t *tree = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;

    if (plan->hook != NULL)
        RANKS_OK(conf_parse("run.yaml", plan->hook, &tree, &err), err);
    config.hook = tree != NULL ? tree_get(tree, "hook") : NULL;
    RANKS_OK(hook_group_make(oob, &group, &err), err);
    rc = ddp_open(&config, group, group, &layout, &ddp, &err);
    RANKS_CHECK(rc == plan->expected);
    if (oob->rank == 0)
        memcpy(plan->text, err.text, sizeof plan->text);
    if (rc == ERR_OK) {
        RANKS_CHECK(ddp_buckets(ddp) > 2);
        RANKS_OK(ddp_step_set(ddp, plan->at, &err), err);
        for (int step = 0; step < plan->steps; step++)
            if (step_run(ddp, oob, plan, step) != 0)
                return 1;
        memcpy(plan->sent[oob->rank], ddp_grads(ddp), sizeof *plan->sent);
        rests_note(ddp, plan, oob->rank);
        if (oob->rank == 0)
            plan->bytes = ddp_stats_take(ddp).bytes;
    }
    ddp_close(ddp);
    comm_group_close(group);
    tree_free(tree);
    return 0;
}

void hook_run(hook_plan_t *plan, int ranks)
{
    cr_assert_eq(ranks_threads(ranks, hook_main, plan), 0);
    for (int r = 1; r < ranks; r++)
        cr_assert_eq(memcmp(plan->sent[0], plan->sent[r], sizeof *plan->sent),
                     0, "rank %d of %d has other bits", r, ranks);
}

double hook_norm(const double *x)
{
    double sum = 0;

    for (int i = 0; i < HOOK_ELEMS; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

double hook_worst(const hook_plan_t *plan, int ranks, int from, int to)
{
    double most = 0;

    for (int i = from; i < to; i++) {
        double sum = 0;

        for (int r = 0; r < ranks; r++)
            sum += (double)plan->last[r][i];
        most = fmax(most, fabs(sum - (double)plan->sent[0][i]));
    }
    return most;
}

void hook_nothing_is_lost(const hook_plan_t *plan, int ranks, double part)
{
    double lost[HOOK_ELEMS], given[HOOK_ELEMS] = {0};

    for (int i = 0; i < HOOK_ELEMS; i++) {
        lost[i] = plan->used[i];
        for (int r = 0; r < ranks; r++) {
            lost[i] += plan->rests[r][i] - plan->given[r][i];
            given[i] += plan->given[r][i];
        }
    }
    cr_assert_lt(hook_norm(lost), part * hook_norm(given), "%g of %g",
                 hook_norm(lost), hook_norm(given));
}
