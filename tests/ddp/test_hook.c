/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The built-in comm hooks over 1 to 7 ranks that are threads: equal bits on
 * every rank, exact sums where promised, otherwise no loss over time, and
 * fewer bytes.
 */
#include "ddp/hook.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "conf/conf.h"
#include "ddp/hook_fixture.h"
#include "ddp/hook_priv.h"

/* ---- powersgd ------------------------------------------------------------ */

/* Bytes of memory that `--check` prints for this hook, for a matrix of 60 rows,
 * which has [columns] columns, and a bias. */
static size_t bytes_of_width(const char *hook, size_t columns)
{
    const size_t count = 60 * columns;
    const ddp_view_t views[] = {
        {.name = "w", .count = count, .ndim = 2, .rows = 60},
        {.name = "b", .offset = count, .count = 16, .ndim = 1, .rows = 16}};
    const ddp_layout_t layout = {
        .views = views, .view_count = 2, .grad_elems = count + 16};
    ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};
    tree_t *tree = NULL;
    size_t bytes = 1;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("run.yaml", hook, &tree, &err), ERR_OK);
    config.hook = tree_get(tree, "hook");
    cr_assert_eq(ddp_hook_bytes(&config, &layout, 4, &bytes, &err), ERR_OK,
                 "%s", err.text);
    tree_free(tree);
    return bytes;
}

static size_t bytes_of(const char *hook)
{
    return bytes_of_width(hook, 100);
}

/* No machine has the memory of these gradients. */
Test(hook, memory_is_counted_without_allocating_it)
{
    const size_t columns = (size_t)1 << 42;

    cr_assert_eq(bytes_of_width("hook: bf16", columns),
                 (60 * columns + 16) * (2 + 4));
    cr_assert_eq(bytes_of_width("hook: {powersgd: {rank: 3}}", columns),
                 4 * (180 + 16 + 3 * columns + 60 * columns + 16));
}

Test(hook, memory_is_told_beforehand)
{
    cr_assert_eq(bytes_of("hook: none"), 0);
    cr_assert_eq(bytes_of("hook: bf16"), 6016 * (2 + 4));
    cr_assert_eq(bytes_of("hook: {fp16: {error_feedback: false}}"), 6016 * 2);
    /* P (60 x 3) and the bias in the message, Q (100 x 3), and the residual. */
    cr_assert_eq(bytes_of("hook: {powersgd: {rank: 3}}"),
                 4 * (180 + 16 + 300 + 6016));
}

Test(hook, none_is_the_plain_sum)
{
    const char *words[] = {NULL, "hook: none", "hook: null",
                           "hook: {none: {}}"};
    hook_plan_t *plain = NULL;

    for (int w = 0; w < 4; w++) {
        hook_plan_t *plan = hook_plan_make(words[w], 2);

        hook_run(plan, 3);
        cr_assert_lt(hook_worst(plan, 3, 0, HOOK_ELEMS), 1e-5);
        cr_assert(plain == NULL || memcmp(plain->sent[0], plan->sent[0],
                                          sizeof *plan->sent) == 0);
        if (plain == NULL)
            plain = plan;
        else
            free(plan);
    }
    free(plain);
}

Test(hook, powersgd_loses_nothing_over_time)
{
    for (int ranks = 1; ranks <= HOOK_RANKS; ranks++) {
        hook_plan_t *plan =
            hook_plan_make("hook: {powersgd: {rank: 2, start_step: 3}}", 9);

        hook_run(plan, ranks);
        hook_nothing_is_lost(plan, ranks, 1e-5);
        cr_assert_gt(hook_norm(plan->rests[0]), 1.0);
        free(plan);
    }
}

Test(hook, powersgd_sends_vectors_and_small_matrices_as_they_are)
{
    hook_plan_t *plan = hook_plan_make("hook: {powersgd: {start_step: 0}}", 3);

    hook_run(plan, 4);
    cr_assert_lt(hook_worst(plan, 4, 0, 48), 1e-5);
    cr_assert_lt(hook_worst(plan, 4, 2624, 2656), 1e-5);
    cr_assert_gt(hook_worst(plan, 4, 48, 2608), 0.1);
    cr_assert_gt(hook_worst(plan, 4, 2656, HOOK_ELEMS), 0.1);
    free(plan);
}

Test(hook, powersgd_is_plain_before_its_start)
{
    hook_plan_t *plain = hook_plan_make(NULL, 3);
    hook_plan_t *plan = hook_plan_make("hook: {powersgd: {start_step: 3}}", 3);

    hook_run(plain, 3);
    hook_run(plan, 3);
    cr_assert_eq(memcmp(plain->sent[0], plan->sent[0], sizeof *plan->sent), 0);
    /* The same gradients, but one step later in the run. */
    plan->at = 1;
    hook_run(plan, 3);
    cr_assert_neq(memcmp(plain->sent[0], plan->sent[0], sizeof *plan->sent), 0);
    free(plan);
    free(plain);
}

/* Only one step: in the next one Q would align with the rounding errors in the
 * residual, since these gradients have no other common direction. */
Test(hook, powersgd_is_exact_for_a_sum_of_its_rank)
{
    hook_plan_t *plan = hook_plan_make("hook: {powersgd: {start_step: 0}}", 1);

    plan->kind = HOOK_THIN;
    for (int ranks = 1; ranks <= HOOK_RANKS; ranks++) {
        hook_run(plan, ranks);
        cr_assert_lt(hook_worst(plan, ranks, 0, HOOK_ELEMS), 1e-4);
    }
    free(plan);
}

Test(hook, powersgd_bears_gradients_of_zero_and_ranks_without_samples)
{
    hook_plan_t *plan =
        hook_plan_make("hook: {powersgd: {rank: 3, start_step: 0}}", 4);

    plan->kind = HOOK_EVEN;
    hook_run(plan, 2);
    cr_assert_eq(hook_norm(plan->used), 0.0);
    plan->kind = HOOK_RANDOM;
    plan->skipper = 1;
    memset(plan->given, 0, sizeof plan->given);
    memset(plan->used, 0, sizeof plan->used);
    hook_run(plan, 2);
    hook_nothing_is_lost(plan, 2, 1e-5);
    free(plan);
}

Test(hook, powersgd_sends_less)
{
    hook_plan_t *plain = hook_plan_make(NULL, 4);
    hook_plan_t *plan = hook_plan_make("hook: {powersgd: {start_step: 0}}", 4);

    hook_run(plain, 2);
    hook_run(plan, 2);
    cr_assert_lt(plan->bytes, plain->bytes / 10);
    free(plan);
    free(plain);
}

Test(hook, powersgd_without_memory_keeps_none)
{
    hook_plan_t *plan =
        hook_plan_make("hook: {powersgd: {start_step: 0, error_feedback: "
                       "false, warm_start: false}}",
                       4);

    hook_run(plan, 3);
    cr_assert_eq(hook_norm(plan->rests[1]), 0.0);
    free(plan);
}

/* ---- fp16, bf16 ---------------------------------------------------------- */

/* Only the rounding of the sums is lost. */
Test(hook, halves_are_near_in_each_step_and_nearer_over_time)
{
    /* relative to the largest sums */
    const double step[] = {1.0 / 1024, 1.0 / 128};

    for (int h = 0; h < 2; h++)
        for (int ranks = 1; ranks <= HOOK_RANKS; ranks++) {
            hook_plan_t *plan = hook_plan_make(hook_halves[h], 20);

            hook_run(plan, ranks);
            cr_assert_lt(hook_worst(plan, ranks, 0, HOOK_ELEMS), 16 * step[h],
                         "%s: %g", hook_halves[h],
                         hook_worst(plan, ranks, 0, HOOK_ELEMS));
            cr_assert_gt(hook_worst(plan, ranks, 0, HOOK_ELEMS), 0.0);
            hook_nothing_is_lost(plan, ranks, step[h] / 2);
            cr_assert_gt(hook_norm(plan->rests[0]), 0.0);
            free(plan);
        }
}

Test(hook, halves_send_half)
{
    hook_plan_t *plain = hook_plan_make(NULL, 4);

    hook_run(plain, 2);
    for (int h = 0; h < 2; h++) {
        hook_plan_t *plan = hook_plan_make(hook_halves[h], 4);

        hook_run(plan, 2);
        cr_assert_lt(plan->bytes, plain->bytes / 2 + 1000);
        free(plan);
    }
    free(plain);
}

static double owed(const hook_plan_t *plan, int ranks, int i)
{
    double sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += plan->rests[r][i];
    return sum;
}

/* 1e-9 is less than half of the smallest number of fp16. */
Test(hook, what_is_too_small_for_fp16_arrives_in_time)
{
    hook_plan_t *plan = hook_plan_make("hook: fp16", 400);
    const double given = 3 * 400 * 1e-9;

    plan->kind = HOOK_EVEN;
    plan->even = 1e-9f;
    hook_run(plan, 3);
    for (int i = 48; i < 2608; i++) {
        cr_assert_gt(plan->used[i], 0.8 * given);
        cr_assert_float_eq(plan->used[i] + owed(plan, 3, i), given,
                           1e-3 * given);
    }
    plan->hook = "hook: {fp16: {error_feedback: false}}";
    memset(plan->used, 0, sizeof plan->used);
    hook_run(plan, 3);
    cr_assert_eq(plan->used[48], 0.0);
    free(plan);
}

/* The sum is 3e5, five times the largest number of fp16. */
Test(hook, what_is_too_large_for_fp16_follows)
{
    hook_plan_t *plan = hook_plan_make("hook: fp16", 8);

    plan->kind = HOOK_EVEN;
    plan->even = 1e5f;
    plan->until = 1;
    hook_run(plan, 3);
    for (int i = 48; i < 2608; i++) {
        cr_assert_float_eq(plan->used[i] + owed(plan, 3, i), 3e5, 100);
        cr_assert_float_eq(plan->used[i], 3e5, 100);
    }
    free(plan);
}

static float rounded(float x, bool bf16)
{
    uint16_t half;

    (bf16 ? half_round_bf16 : half_round_fp16)(&half, &x, 1);
    (bf16 ? half_widen_bf16 : half_widen_fp16)(&x, &half, 1);
    return x;
}

/* The largest magnitude that a rank of [size] sends. */
static float sent_most(const ddp_hook_ops_t *ops, int size)
{
    const bool options[8] = {0}; /* no error feedback */
    ddp_rounding_t rounding;

    ops->rounds(options, &rounding);
    return rounded(ddp_rounding_limit(&rounding, size),
                   rounding.type == COMM_BFLOAT16);
}

/* A sum along a ring is rounded at each rank. Groups of ranks may also be added
 * first, and then their sums. */
Test(hook, halves_stay_finite_if_each_sum_of_two_is_rounded)
{
    const ddp_hook_ops_t *const ops[] = {&ddp_hook_fp16, &ddp_hook_bf16};

    for (int size = 1; size <= 1024; size++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            const float most = sent_most(ops[bf16], size);
            float ring = most, group = most, groups;

            for (int r = 1; r < size; r++)
                ring = rounded(ring + most, bf16);
            cr_assert(isfinite(ring), "%d ranks", size);
            for (int r = 1; r < 8; r++)
                group = rounded(group + most, bf16);
            groups = group;
            for (int r = 8; r + 8 <= size; r += 8)
                groups = rounded(groups + group, bf16);
            cr_assert(size < 8 || isfinite(groups), "%d ranks", size);
            cr_assert_gt(most * (float)size, bf16 ? 0x1p125f : 0x1p13f);
        }
}

Test(hook, halves_pass_on_what_is_no_number)
{
    for (int h = 0; h < 2; h++) {
        hook_plan_t *plan = hook_plan_make(hook_halves[h], 1);

        plan->kind = HOOK_EVEN;
        plan->even = INFINITY;
        hook_run(plan, 2);
        cr_assert(isinf(plan->sent[1][48]));
        plan->even = NAN;
        hook_run(plan, 2);
        cr_assert(isnan(plan->sent[1][48]));
        free(plan);
    }
}
