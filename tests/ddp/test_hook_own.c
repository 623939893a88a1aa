/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A comm hook that this program defines and chooses by name; and gradient
 * descent with the built-in hooks.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "ddp/hook.h"
#include "ddp/hook_fixture.h"
#include "ddp/hook_turns.h"

/* ---- a hook of one's own ------------------------------------------------- */

/* A rank sends the signs of its gradients, and one length per bucket, the mean
 * of their magnitudes; it keeps no residual. A bucket's message is the length,
 * then the signs. */
typedef struct signs {
    signed char *mine, *all;
    size_t room; /* bytes of a rank's messages */
    int size;
} signs_t;

static void signs_close(void *state)
{
    signs_t *signs = state;

    free(signs->mine);
    free(signs->all);
    free(signs);
}

static err_code_t signs_open(const ddp_hook_plan_t *plan, void **state,
                             err_t *err)
{
    signs_t *signs = calloc(1, sizeof *signs);
    size_t messages;

    (void)err;
    signs->room = plan->elems + sizeof(float) * (size_t)plan->bucket_count;
    signs->size = plan->size;
    messages = signs->room * (size_t)plan->size;
    signs->mine = calloc(1, signs->room);
    signs->all = calloc(1, messages);
    *state = signs;
    return ERR_OK;
}

static err_code_t signs_turn(void *state, const ddp_hook_bucket_t *bucket,
                             int turn, ddp_wire_t *wire, err_t *err)
{
    signs_t *signs = state;
    size_t at = bucket->offset + sizeof(float) * (size_t)bucket->index;
    size_t bytes = bucket->count + sizeof(float);
    signed char *mine = signs->mine + at;
    signed char *all = signs->all + at * (size_t)signs->size;
    float length = 0;
    err_code_t rc;

    if (turn == 0) {
        for (size_t i = 0; i < bucket->count; i++)
            length += fabsf(bucket->grads[i]) / (float)bucket->count;
        memcpy(mine, &length, sizeof length);
        for (size_t i = 0; i < bucket->count; i++)
            mine[sizeof length + i] =
                (signed char)((bucket->grads[i] > 0) - (bucket->grads[i] < 0));
        return ddp_wire_gather(wire, mine, bytes, all, err);
    }
    rc = ddp_wire_wait(wire, err);
    memset(bucket->grads, 0, bucket->count * sizeof *bucket->grads);
    for (int r = 0; rc == ERR_OK && r < ddp_wire_size(wire); r++) {
        const signed char *theirs = all + (size_t)r * bytes;

        memcpy(&length, theirs, sizeof length);
        for (size_t i = 0; i < bucket->count; i++)
            bucket->grads[i] += length * (float)theirs[sizeof length + i];
    }
    return rc;
}

static const opt_row_t signs_rows[] = {{.name = NULL}};

static const ddp_hook_ops_t signs_hook = {
    .row = {.name = "signs", .help = "Signs alone", .options = signs_rows},
    .turns = 2,
    .open = signs_open,
    .close = signs_close,
    .turn = signs_turn};

static const ddp_hook_ops_t *const own_hooks[] = {&signs_hook, NULL};

Test(hook_own, one_of_ones_own_is_chosen_by_name)
{
    hook_plan_t *plain = hook_plan_make(NULL, 2);
    hook_plan_t *plan = hook_plan_make("hook: signs", 2);

    plan->hooks = own_hooks;
    hook_run(plain, 5);
    hook_run(plan, 5);
    cr_assert_lt(plan->bytes, plain->bytes / 3);
    for (int i = 48; i < 2608; i++) {
        double sum = 0;

        for (int r = 0; r < 5; r++)
            sum += plan->last[r][i] > 0 ? 0.8 : -0.8;
        cr_assert_float_eq(plan->sent[0][i], sum, 0.4, "%d", i);
    }
    free(plan);
    free(plain);
}

Test(hook_own, an_unknown_one_is_refused_with_those_that_there_are)
{
    hook_plan_t *plan = hook_plan_make("hook: sings", 1);

    plan->hooks = own_hooks;
    plan->expected = ERR_CONFIG;
    hook_run(plan, 2);
    cr_assert_not_null(strstr(plan->text, "run.yaml:1:7"), "%s", plan->text);
    cr_assert_not_null(strstr(plan->text, "did you mean 'signs'"), "%s",
                       plan->text);
    cr_assert_not_null(strstr(plan->text, "powersgd, signs"), "%s", plan->text);
    plan->hook = "hook: {powersgd: {rnk: 2}}";
    hook_run(plan, 1);
    cr_assert_not_null(strstr(plan->text, "did you mean 'rank'"), "%s",
                       plan->text);
    free(plan);
}

Test(hook_own, a_hook_for_a_device_is_refused_on_the_cpu)
{
    hook_plan_t *plan = hook_plan_make("hook: turns", 1);

    plan->hooks = hook_turns_host;
    hook_run(plan, 2);
    plan->hooks = hook_turns_device;
    plan->expected = ERR_CONFIG;
    for (int ranks = 1; ranks <= 2; ranks++) {
        hook_run(plan, ranks);
        cr_assert_not_null(strstr(plan->text,
                                  "the comm hook \"turns\" wants gradients in "
                                  "the memory of a GPU, but in this run they "
                                  "are in the memory of the host"),
                           "%s", plan->text);
    }
    free(plan);
}

/* ---- descending together ------------------------------------------------- */

/* Rank r minimises f_r(x) = |x - c_r|^2 / 2. The minimum of the sum is the mean
 * of all c_r. */
typedef struct descent {
    const char *hook;
    double rate;
    int steps;
    double left[HOOK_RANKS]; /* each rank's distance to the minimum */
} descent_t;

static void descend(ddp_t *ddp, const comm_oob_t *oob, float *x,
                    const descent_t *descent)
{
    hook_plan_t fixed = {.kind = HOOK_RANDOM};
    float *mine = calloc(HOOK_ELEMS, sizeof *mine);
    float *grads = ddp_grads(ddp);

    hook_fill(&fixed, oob->rank, 0, mine);
    for (int step = 0; step < descent->steps; step++) {
        ddp_step_begin(ddp, NULL);
        for (int i = 0; i < HOOK_ELEMS; i++)
            grads[i] = (x[i] - mine[i]) / (float)oob->size;
        for (int v = HOOK_VIEWS - 1; v >= 0; v--)
            ddp_grad_ready(ddp, v, NULL);
        ddp_step_wait(ddp, NULL);
        for (int i = 0; i < HOOK_ELEMS; i++)
            x[i] -= (float)descent->rate * grads[i];
    }
    free(mine);
}

static double distance(const float *x, int size)
{
    hook_plan_t fixed = {.kind = HOOK_RANDOM};
    double *mean = calloc(HOOK_ELEMS, sizeof *mean), sum;
    float *theirs = calloc(HOOK_ELEMS, sizeof *theirs);

    for (int r = 0; r < size; r++) {
        hook_fill(&fixed, r, 0, theirs);
        for (int i = 0; i < HOOK_ELEMS; i++)
            mean[i] += (double)theirs[i] / size;
    }
    for (int i = 0; i < HOOK_ELEMS; i++)
        mean[i] -= (double)x[i];
    sum = hook_norm(mean);
    free(theirs);
    free(mean);
    return sum;
}

static int descent_main(const comm_oob_t *oob, void *argument)
{
    descent_t *descent = argument;
    ddp_config_t config = {
        .first_bucket_mb = 0.01, .bucket_cap_mb = 1, .last_bucket_mb = 0.001};
    ddp_layout_t layout = {.views = hook_views,
                           .view_count = HOOK_VIEWS,
                           .grad_elems = HOOK_ELEMS};
    float *x = calloc(HOOK_ELEMS, sizeof *x);
    comm_group_t *group = NULL;
    tree_t *tree = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(conf_parse("run.yaml", descent->hook, &tree, &err), err);
    config.hook = tree != NULL ? tree_get(tree, "hook") : NULL;
    RANKS_OK(hook_group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    descend(ddp, oob, x, descent);
    descent->left[oob->rank] = distance(x, oob->size);
    ddp_close(ddp);
    comm_group_close(group);
    tree_free(tree);
    free(x);
    return 0;
}

static double descent_left(const char *hook, double rate, int steps, int ranks)
{
    descent_t descent = {.hook = hook, .rate = rate, .steps = steps};

    cr_assert_eq(ranks_threads(ranks, descent_main, &descent), 0);
    for (int r = 1; r < ranks; r++)
        cr_assert_eq(descent.left[r], descent.left[0]);
    return descent.left[0];
}

/* The distance is about 65 at the start. Only with residuals does all of it
 * decrease; without, only the components in the first columns are seen. */
Test(hook_own, ranks_descend_to_the_common_minimum)
{
    double with = descent_left("hook: {powersgd: {rank: 2, start_step: 0}}",
                               0.05, 600, 3);

    cr_assert_lt(with, 0.5, "%g", with);
    for (int h = 0; h < 2; h++) {
        with = descent_left(hook_halves[h], 0.5, 40, 3);
        cr_assert_lt(with, 0.5, "%s: %g", hook_halves[h], with);
    }
}
