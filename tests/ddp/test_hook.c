/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Comm hooks over 1 to 7 ranks that are threads: the same bits on every rank,
 * exact where they promise it, nothing lost over time where they do not, fewer
 * bytes, and a hook that is written here and chosen by its name.
 */
#include "ddp/hook.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conf/conf.h"
#include "ddp/ddp.h"
#include "lib/ranks.h"

#define TAIL 3
#define RANKS 7

/* Two matrices worth compressing (one of a convolution's shape), vectors, a
 * small matrix; gaps between them. */
#define VIEWS 5
static const view_t views[VIEWS] = {
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
#define ELEMS (2656 + 32 * 54)

typedef enum kind { RANDOM, THIN, EVEN } kind_t;

typedef struct plan {
    const char *hook; /* YAML; NULL: no hook key */
    const ddp_hook_ops_t *const *hooks;
    kind_t kind;
    float even; /* EVEN: every gradient */
    int until;  /* EVEN: steps with it, then zeros; 0: all */
    int steps;
    int skipper;                /* rank that has no samples in odd steps */
    float sent[RANKS][ELEMS];   /* last step's result */
    double used[ELEMS];         /* sum over steps, of rank 0 */
    double given[RANKS][ELEMS]; /* sum over steps of the gradients */
    double rests[RANKS][ELEMS]; /* residuals at the end */
    float last[RANKS][ELEMS];   /* last step's gradients */
    int64_t bytes;              /* of rank 0, over all steps */
    int64_t at;                 /* first step of the run */
    err_code_t expected;        /* of opening */
    char text[sizeof((err_t *)NULL)->text];
} plan_t;

static plan_t *plan_make(const char *hook, int steps)
{
    plan_t *plan = calloc(1, sizeof *plan);

    cr_assert_not_null(plan);
    plan->hook = hook;
    plan->steps = steps;
    plan->skipper = -1;
    return plan;
}

/* Gradients of one step. THIN: each rank's matrices are u v^T with a v that all
 * ranks share, so that their sum is of rank 1, too. */
static void fill(const plan_t *plan, int rank, int step, float *grads)
{
    for (int v = 0; v < VIEWS; v++) {
        size_t columns = views[v].count / views[v].rows;
        rng_t mine, all;

        rng_open(&mine, 11, RNG_INIT, (uint64_t)(rank * 1000 + step),
                 (uint64_t)v);
        rng_open(&all, 12, RNG_INIT, (uint64_t)step, (uint64_t)v);
        for (size_t r = 0; r < views[v].rows; r++) {
            float u = (float)rng_normal(&mine);
            rng_t thin = all;

            for (size_t c = 0; c < columns; c++)
                grads[views[v].offset + r * columns + c] =
                    plan->kind == THIN     ? u * (float)rng_normal(&thin)
                    : plan->kind == RANDOM ? (float)rng_normal(&mine)
                    : plan->until == 0 || step < plan->until ? plan->even
                                                             : 0.0f;
        }
    }
}

static err_code_t group_make(const comm_oob_t *oob, comm_group_t **group,
                             err_t *err)
{
    comm_config_t config = {.backend = oob->size == 1 ? "self" : "threads",
                            .timeout = 20.0};

    return comm_group_open(&config, oob, group, err);
}

static int step_run(ddp_t *ddp, const comm_oob_t *oob, plan_t *plan, int step)
{
    int rank = oob->rank;
    bool skip = rank == plan->skipper && step % 2 == 1;
    float *grads = ddp_grads(ddp);
    err_t err = ERR_INIT;

    ddp_step_begin(ddp);
    fill(plan, rank, step, grads);
    for (int t = 0; t < TAIL; t++)
        ddp_tail(ddp)[t] = rank + 1e-9 * t;
    if (skip)
        memset(grads, 0, ELEMS * sizeof *grads);
    memcpy(plan->last[rank], grads, sizeof plan->last[rank]);
    for (int i = 0; i < ELEMS; i++)
        plan->given[rank][i] += grads[i];
    for (int v = 0; !skip && v < VIEWS; v++)
        RANKS_OK(ddp_grad_ready(ddp, v, &err), err);
    RANKS_OK(ddp_step_skip(ddp, &err), err);
    RANKS_OK(ddp_step_wait(ddp, &err), err);
    for (int t = 0; t < TAIL; t++) {
        double tail = 0;

        for (int r = 0; r < oob->size; r++)
            tail += r + 1e-9 * t;
        RANKS_CHECK(fabs(ddp_tail(ddp)[t] - tail) < 1e-12);
    }
    for (int i = 0; rank == 0 && i < ELEMS; i++)
        plan->used[i] += grads[i];
    return 0;
}

static void rests_note(ddp_t *ddp, plan_t *plan, int rank)
{
    ddp_hook_part_t parts[DDP_HOOK_PARTS];
    int count = ddp_hook_parts(ddp, parts);

    for (int p = 0; p < count; p++)
        for (size_t i = 0; strcmp(parts[p].name, "residual") == 0 && i < ELEMS;
             i++)
            plan->rests[rank][i] = parts[p].data[i];
}

static int hook_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    ddp_config_t config = {.first_bucket_mb = 0.002,
                           .bucket_cap_mb = 0.011,
                           .last_bucket_mb = 0.001,
                           .hooks = plan->hooks};
    ddp_layout_t layout = {.views = views,
                           .view_count = VIEWS,
                           .grad_elems = ELEMS,
                           .tail_doubles = TAIL};
    comm_group_t *group = NULL;
    tree_t *tree = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;

    if (plan->hook != NULL)
        RANKS_OK(conf_parse("run.yaml", plan->hook, &tree, &err), err);
    config.hook = tree != NULL ? tree_get(tree, "hook") : NULL;
    RANKS_OK(group_make(oob, &group, &err), err);
    rc = ddp_open(&config, group, &layout, &ddp, &err);
    RANKS_CHECK(rc == plan->expected);
    if (oob->rank == 0)
        memcpy(plan->text, err.text, sizeof plan->text);
    if (rc == ERR_OK) {
        RANKS_CHECK(ddp_buckets(ddp) > 2);
        ddp_step_set(ddp, plan->at);
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

/* Run, and see that all ranks ended with the same bits. */
static void run(plan_t *plan, int ranks)
{
    cr_assert_eq(ranks_threads(ranks, hook_main, plan), 0);
    for (int r = 1; r < ranks; r++)
        cr_assert_eq(memcmp(plan->sent[0], plan->sent[r], sizeof *plan->sent),
                     0, "rank %d of %d has other bits", r, ranks);
}

static double norm(const double *x)
{
    double sum = 0;

    for (int i = 0; i < ELEMS; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* The largest difference between the last step's result and the true sum. */
static double worst(const plan_t *plan, int ranks, int from, int to)
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

/* What was used and what is still owed are all that was given, but for [part]
 * of it. */
static void nothing_is_lost(const plan_t *plan, int ranks, double part)
{
    double lost[ELEMS], given[ELEMS] = {0};

    for (int i = 0; i < ELEMS; i++) {
        lost[i] = plan->used[i];
        for (int r = 0; r < ranks; r++) {
            lost[i] += plan->rests[r][i] - plan->given[r][i];
            given[i] += plan->given[r][i];
        }
    }
    cr_assert_lt(norm(lost), part * norm(given), "%g of %g", norm(lost),
                 norm(given));
}

/* ---- powersgd ------------------------------------------------------------ */

Test(hook, none_is_the_plain_sum)
{
    const char *words[] = {NULL, "hook: none", "hook: null",
                           "hook: {none: {}}"};
    plan_t *plain = NULL;

    for (int w = 0; w < 4; w++) {
        plan_t *plan = plan_make(words[w], 2);

        run(plan, 3);
        cr_assert_lt(worst(plan, 3, 0, ELEMS), 1e-5);
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
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        plan_t *plan =
            plan_make("hook: {powersgd: {rank: 2, start_step: 3}}", 9);

        run(plan, ranks);
        nothing_is_lost(plan, ranks, 1e-5);
        cr_assert_gt(norm(plan->rests[0]), 1.0);
        free(plan);
    }
}

Test(hook, powersgd_sends_vectors_and_small_matrices_as_they_are)
{
    plan_t *plan = plan_make("hook: {powersgd: {start_step: 0}}", 3);

    run(plan, 4);
    cr_assert_lt(worst(plan, 4, 0, 48), 1e-5);
    cr_assert_lt(worst(plan, 4, 2624, 2656), 1e-5);
    cr_assert_gt(worst(plan, 4, 48, 2608), 0.1);
    cr_assert_gt(worst(plan, 4, 2656, ELEMS), 0.1);
    free(plan);
}

Test(hook, powersgd_is_plain_before_its_start)
{
    plan_t *plain = plan_make(NULL, 3);
    plan_t *plan = plan_make("hook: {powersgd: {start_step: 3}}", 3);

    run(plain, 3);
    run(plan, 3);
    cr_assert_eq(memcmp(plain->sent[0], plan->sent[0], sizeof *plan->sent), 0);
    /* The same steps at a later place of the run. */
    plan->at = 1;
    run(plan, 3);
    cr_assert_neq(memcmp(plain->sent[0], plan->sent[0], sizeof *plan->sent), 0);
    free(plan);
    free(plain);
}

/* One step: what is left over by rounding lies where the next step's Q looks
 * first, if all that the gradients have in common is their rank. */
Test(hook, powersgd_is_exact_for_a_sum_of_its_rank)
{
    plan_t *plan = plan_make("hook: {powersgd: {start_step: 0}}", 1);

    plan->kind = THIN;
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        run(plan, ranks);
        cr_assert_lt(worst(plan, ranks, 0, ELEMS), 1e-4);
    }
    free(plan);
}

Test(hook, powersgd_bears_gradients_of_zero_and_ranks_without_samples)
{
    plan_t *plan = plan_make("hook: {powersgd: {rank: 3, start_step: 0}}", 4);

    plan->kind = EVEN;
    run(plan, 2);
    cr_assert_eq(norm(plan->used), 0.0);
    plan->kind = RANDOM;
    plan->skipper = 1;
    memset(plan->given, 0, sizeof plan->given);
    memset(plan->used, 0, sizeof plan->used);
    run(plan, 2);
    nothing_is_lost(plan, 2, 1e-5);
    free(plan);
}

Test(hook, powersgd_sends_less)
{
    plan_t *plain = plan_make(NULL, 4);
    plan_t *plan = plan_make("hook: {powersgd: {start_step: 0}}", 4);

    run(plain, 2);
    run(plan, 2);
    cr_assert_lt(plan->bytes, plain->bytes / 10);
    free(plan);
    free(plain);
}

Test(hook, powersgd_without_memory_keeps_none)
{
    plan_t *plan = plan_make("hook: {powersgd: {start_step: 0, error_feedback: "
                             "false, warm_start: false}}",
                             4);

    run(plan, 3);
    cr_assert_eq(norm(plan->rests[1]), 0.0);
    free(plan);
}

/* ---- fp16, bf16 ---------------------------------------------------------- */

static const char *const halves[] = {"hook: fp16", "hook: bf16"};

/* Rounding of the sums is all that is lost. */
Test(hook, halves_are_near_in_each_step_and_nearer_over_time)
{
    const double step[] = {1.0 / 1024, 1.0 / 128}; /* of the largest sums */

    for (int h = 0; h < 2; h++)
        for (int ranks = 1; ranks <= RANKS; ranks++) {
            plan_t *plan = plan_make(halves[h], 20);

            run(plan, ranks);
            cr_assert_lt(worst(plan, ranks, 0, ELEMS), 16 * step[h], "%s: %g",
                         halves[h], worst(plan, ranks, 0, ELEMS));
            cr_assert_gt(worst(plan, ranks, 0, ELEMS), 0.0);
            nothing_is_lost(plan, ranks, step[h] / 2);
            cr_assert_gt(norm(plan->rests[0]), 0.0);
            free(plan);
        }
}

Test(hook, halves_send_half)
{
    plan_t *plain = plan_make(NULL, 4);

    run(plain, 2);
    for (int h = 0; h < 2; h++) {
        plan_t *plan = plan_make(halves[h], 4);

        run(plan, 2);
        cr_assert_lt(plan->bytes, plain->bytes / 2 + 1000);
        free(plan);
    }
    free(plain);
}

static double owed(const plan_t *plan, int ranks, int i)
{
    double sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += plan->rests[r][i];
    return sum;
}

/* 1e-9 is below half of fp16's smallest number. */
Test(hook, what_is_too_small_for_fp16_arrives_in_time)
{
    plan_t *plan = plan_make("hook: fp16", 400);
    const double given = 3 * 400 * 1e-9;

    plan->kind = EVEN;
    plan->even = 1e-9f;
    run(plan, 3);
    for (int i = 48; i < 2608; i++) {
        cr_assert_gt(plan->used[i], 0.8 * given);
        cr_assert_float_eq(plan->used[i] + owed(plan, 3, i), given,
                           1e-3 * given);
    }
    plan->hook = "hook: {fp16: {error_feedback: false}}";
    memset(plan->used, 0, sizeof plan->used);
    run(plan, 3);
    cr_assert_eq(plan->used[48], 0.0);
    free(plan);
}

/* 3e5 in all, five times what fp16 can hold. */
Test(hook, what_is_too_large_for_fp16_follows)
{
    plan_t *plan = plan_make("hook: fp16", 8);

    plan->kind = EVEN;
    plan->even = 1e5f;
    plan->until = 1;
    run(plan, 3);
    for (int i = 48; i < 2608; i++) {
        cr_assert_float_eq(plan->used[i] + owed(plan, 3, i), 3e5, 100);
        cr_assert_float_eq(plan->used[i], 3e5, 100);
    }
    free(plan);
}

Test(hook, halves_pass_on_what_is_no_number)
{
    for (int h = 0; h < 2; h++) {
        plan_t *plan = plan_make(halves[h], 1);

        plan->kind = EVEN;
        plan->even = INFINITY;
        run(plan, 2);
        cr_assert(isinf(plan->sent[1][48]));
        plan->even = NAN;
        run(plan, 2);
        cr_assert(isnan(plan->sent[1][48]));
        free(plan);
    }
}

/* ---- a hook of one's own ------------------------------------------------- */

/* Every rank gives its gradients as a sign and one length for all, the mean of
 * their sizes; no memory. A bucket's message: the length, then the signs. */
typedef struct signs {
    signed char *mine, *all;
    size_t room; /* bytes of a message */
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

Test(hook, one_of_ones_own_is_chosen_by_name)
{
    plan_t *plain = plan_make(NULL, 2);
    plan_t *plan = plan_make("hook: signs", 2);

    plan->hooks = own_hooks;
    run(plain, 5);
    run(plan, 5);
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

Test(hook, an_unknown_one_is_refused_with_those_that_there_are)
{
    plan_t *plan = plan_make("hook: sings", 1);

    plan->hooks = own_hooks;
    plan->expected = ERR_CONFIG;
    run(plan, 2);
    cr_assert_not_null(strstr(plan->text, "run.yaml:1:7"), "%s", plan->text);
    cr_assert_not_null(strstr(plan->text, "did you mean 'signs'"), "%s",
                       plan->text);
    cr_assert_not_null(strstr(plan->text, "powersgd, signs"), "%s", plan->text);
    plan->hook = "hook: {powersgd: {rnk: 2}}";
    run(plan, 1);
    cr_assert_not_null(strstr(plan->text, "did you mean 'rank'"), "%s",
                       plan->text);
    free(plan);
}

/* ---- descending together ------------------------------------------------- */

/* f_r(x) = |x - c_r|^2 / 2 over all elements; the ranks' minimum is the mean of
 * the c_r, wherever a rank's own lies. */
typedef struct descent {
    const char *hook;
    double rate;
    int steps;
    double left[RANKS]; /* distance to the minimum */
} descent_t;

static void descend(ddp_t *ddp, const comm_oob_t *oob, float *x,
                    const descent_t *descent)
{
    plan_t fixed = {.kind = RANDOM};
    float *mine = calloc(ELEMS, sizeof *mine);
    float *grads = ddp_grads(ddp);

    fill(&fixed, oob->rank, 0, mine);
    for (int step = 0; step < descent->steps; step++) {
        ddp_step_begin(ddp);
        for (int i = 0; i < ELEMS; i++)
            grads[i] = (x[i] - mine[i]) / (float)oob->size;
        for (int v = VIEWS - 1; v >= 0; v--)
            ddp_grad_ready(ddp, v, NULL);
        ddp_step_wait(ddp, NULL);
        for (int i = 0; i < ELEMS; i++)
            x[i] -= (float)descent->rate * grads[i];
    }
    free(mine);
}

static double distance(const float *x, int size)
{
    plan_t fixed = {.kind = RANDOM};
    double *mean = calloc(ELEMS, sizeof *mean), sum;
    float *theirs = calloc(ELEMS, sizeof *theirs);

    for (int r = 0; r < size; r++) {
        fill(&fixed, r, 0, theirs);
        for (int i = 0; i < ELEMS; i++)
            mean[i] += (double)theirs[i] / size;
    }
    for (int i = 0; i < ELEMS; i++)
        mean[i] -= (double)x[i];
    sum = norm(mean);
    free(theirs);
    free(mean);
    return sum;
}

static int descent_main(const comm_oob_t *oob, void *argument)
{
    descent_t *descent = argument;
    ddp_config_t config = {
        .first_bucket_mb = 0.01, .bucket_cap_mb = 1, .last_bucket_mb = 0.001};
    ddp_layout_t layout = {
        .views = views, .view_count = VIEWS, .grad_elems = ELEMS};
    float *x = calloc(ELEMS, sizeof *x);
    comm_group_t *group = NULL;
    tree_t *tree = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(conf_parse("run.yaml", descent->hook, &tree, &err), err);
    config.hook = tree != NULL ? tree_get(tree, "hook") : NULL;
    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, &layout, &ddp, &err), err);
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

/* About 65 at the start. Memory is what brings all of it down: without, only
 * what the first columns hold is seen. */
Test(hook, ranks_descend_to_the_common_minimum)
{
    double with = descent_left("hook: {powersgd: {rank: 2, start_step: 0}}",
                               0.05, 600, 3);

    cr_assert_lt(with, 0.5, "%g", with);
    for (int h = 0; h < 2; h++) {
        with = descent_left(halves[h], 0.5, 40, 3);
        cr_assert_lt(with, 0.5, "%s: %g", halves[h], with);
    }
}
