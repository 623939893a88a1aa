/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Comm hooks through the public headers: a hook of the program, and built-in
 * hooks chosen by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "cddp/cddp.h"

/* ---- an own hook: each rank sends the mean of each bucket ---------------- */

typedef struct means {
    int *closed; /* the context of the hook's table */
    float *mine, *all;
    int size;
    int64_t step;
} means_t;

static void means_close(void *state)
{
    means_t *means = state;

    __atomic_fetch_add(means->closed, 1, __ATOMIC_RELAXED);
    free(means->mine);
    free(means->all);
    free(means);
}

static cddp_code_t means_open(const cddp_hook_plan_t *plan, void **state,
                              cddp_error_t *error)
{
    means_t *means = calloc(1, sizeof *means);
    size_t count = (size_t)plan->bucket_count;

    if (plan->elems == 13) {
        free(means);
        return cddp_error_set(error, CDDP_CONFIG, "13 is no number for me");
    }
    means->closed = plan->context;
    means->size = plan->size;
    means->mine = calloc(count, sizeof *means->mine);
    means->all = calloc(count * (size_t)plan->size, sizeof *means->all);
    *state = means;
    return CDDP_OK;
}

static void means_begin(void *state, int64_t step)
{
    means_t *means = state;

    means->step = step;
}

static cddp_code_t means_turn(void *state, const cddp_hook_bucket_t *bucket,
                              int turn, cddp_wire_t *wire, cddp_error_t *error)
{
    means_t *means = state;
    float *mine = means->mine + bucket->index;
    float *all = means->all + (size_t)bucket->index * (size_t)means->size;
    float sum = 0;

    if (turn == 0) {
        for (size_t i = 0; i < bucket->count; i++)
            sum += bucket->grads[i] / (float)bucket->count;
        *mine = sum + (float)means->step;
        CHECK(cddp_wire_sum(wire, mine, 1, (cddp_type_t)6, error) ==
              CDDP_CONFIG);
        CHECK(strstr(error->text, "of type 6") != NULL);
        return cddp_wire_gather(wire, mine, sizeof *mine, all, error);
    }
    OK(cddp_wire_wait(wire, error));
    for (int r = 0; r < cddp_wire_size(wire); r++)
        sum += all[r];
    CHECK(all[cddp_wire_rank(wire)] == *mine);
    for (size_t i = 0; i < bucket->count; i++)
        bucket->grads[i] = sum;
    return CDDP_OK;
}

static cddp_hook_t means_table(int *closed)
{
    return (cddp_hook_t){.name = "means",
                         .context = closed,
                         .turns = 2,
                         .open = means_open,
                         .close = means_close,
                         .begin = means_begin,
                         .turn = means_turn};
}

/* ---- two steps with any hook ----------------------------------------------
 */

#define ROWS 48
#define COLUMNS 64
#define ELEMS (ROWS * COLUMNS + ROWS)

static const cddp_view_t views[] = {{"w", 0, ROWS *COLUMNS},
                                    {"b", ROWS *COLUMNS, ROWS}};
static const cddp_view_t short_view = {"w", 0, 13};
static const int64_t view_rows[] = {ROWS, 0};

typedef struct plan {
    const char *options;
    const cddp_hook_t *const *hooks;
    size_t elems;
    int64_t start;
    float first[2]; /* w[0] and b[0] of rank 0 after the second step */
} plan_t;

static cddp_code_t steps_run(cddp_ddp_t *ddp, int rank, cddp_error_t *error)
{
    float *grads = cddp_ddp_grads(ddp);

    for (int step = 0; step < 2; step++) {
        cddp_ddp_begin(ddp);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                grads[r * COLUMNS + c] =
                    (float)(rank + 1) * (1 + (float)r / ROWS);
        for (int r = 0; r < ROWS; r++)
            grads[ROWS * COLUMNS + r] = (float)(rank + 1);
        *cddp_ddp_sums(ddp) = rank + 1;
        OK(cddp_ddp_ready(ddp, 1, error));
        OK(cddp_ddp_ready(ddp, 0, error));
        OK(cddp_ddp_wait(ddp, error));
    }
    return CDDP_OK;
}

static cddp_code_t rank_main(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    plan_t *plan = context;
    int rank = cddp_group_rank(group), size = cddp_group_size(group);
    cddp_ddp_config_t config = {.views = views,
                                .view_count = 2,
                                .elems = plan->elems > 0 ? plan->elems : ELEMS,
                                .sums = 1,
                                .options = plan->options,
                                .rows = view_rows,
                                .hooks = plan->hooks};
    cddp_ddp_t *ddp = NULL;
    cddp_code_t code;

    if (plan->elems > 0) {
        config.view_count = 1;
        config.views = &short_view;
        config.rows = NULL;
    }
    OK(cddp_ddp_open(group, &config, &ddp, error));
    code = cddp_ddp_step_set(ddp, plan->start, error);
    if (code == CDDP_OK)
        code = steps_run(ddp, rank, error);
    if (code == CDDP_OK && rank == 0) {
        plan->first[0] = cddp_ddp_grads(ddp)[0];
        plan->first[1] = cddp_ddp_grads(ddp)[ROWS * COLUMNS];
    }
    if (code == CDDP_OK && *cddp_ddp_sums(ddp) != size * (size + 1) / 2.0)
        code = cddp_error_set(error, CDDP_DATA, "the sums are not exact");
    if (code == CDDP_OK)
        code = cddp_ddp_check(ddp, cddp_ddp_grads(ddp), ELEMS * sizeof(float),
                              error);
    cddp_ddp_close(ddp);
    return code;
}

static cddp_code_t ranks_run(int ranks, plan_t *plan, cddp_error_t *error)
{
    cddp_run_config_t config = {.local = ranks, .timeout = 20};

    error->text[0] = '\0';
    return cddp_run(&config, rank_main, plan, error);
}

Test(hook, a_programs_own)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        int closed = 0;
        cddp_hook_t means = means_table(&closed);
        const cddp_hook_t *hooks[] = {&means, NULL};
        plan_t plan = {.options = "{hook: means, first_bucket_mb: 0.005}",
                       .hooks = hooks,
                       .start = 10};
        float sum = (float)ranks * (float)(ranks + 1) / 2;
        cddp_error_t error;

        cr_assert_eq(ranks_run(ranks, &plan, &error), CDDP_OK, "%s",
                     error.text);
        cr_assert_eq(closed, ranks);
        cr_assert_float_eq(plan.first[1], sum + 11 * (float)ranks, 1e-3);
        cr_assert_float_eq(
            plan.first[0],
            sum * (1 + (ROWS - 1) / 2.0 / ROWS) + 11 * (float)ranks, 1e-3);
    }
}

static cddp_code_t far_main(cddp_group_t *group, void *context,
                            cddp_error_t *error)
{
    static const int64_t wrong[] = {-1, INT64_MAX, INT64_MAX / 4 + 1};
    cddp_ddp_config_t config = {.views = views,
                                .view_count = 2,
                                .elems = ELEMS,
                                .sums = 1,
                                .options =
                                    "{hook: means, first_bucket_mb: 0.005}",
                                .rows = view_rows,
                                .hooks = ((plan_t *)context)->hooks};
    cddp_ddp_t *ddp = NULL;
    bool refused = true;
    cddp_code_t code;

    OK(cddp_ddp_open(group, &config, &ddp, error));
    OK(cddp_ddp_step_set(ddp, 3, error));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused = refused &&
                  cddp_ddp_step_set(ddp, wrong[i], error) == CDDP_CONFIG &&
                  strstr(error->text, "from 0 to 2305843009213693951") != NULL;
    code = steps_run(ddp, cddp_group_rank(group), error);
    /* Steps are counted from 3 on. */
    if (code == CDDP_OK &&
        (!refused || fabsf(cddp_ddp_grads(ddp)[ROWS * COLUMNS] - 5) > 1e-3f))
        code = cddp_error_set(error, CDDP_DATA, "b is %g",
                              (double)cddp_ddp_grads(ddp)[ROWS * COLUMNS]);
    if (code == CDDP_OK)
        code = cddp_ddp_step_set(ddp, INT64_MAX / 4, error);
    if (code == CDDP_OK)
        code = steps_run(ddp, cddp_group_rank(group), error);
    cddp_ddp_close(ddp);
    return code;
}

Test(hook, steps_that_no_run_comes_to_are_refused)
{
    int closed = 0;
    cddp_hook_t means = means_table(&closed);
    const cddp_hook_t *hooks[] = {&means, NULL};
    plan_t plan = {.hooks = hooks};
    cddp_run_config_t config = {.local = 1, .timeout = 20};
    cddp_error_t error = {.text = ""};

    cr_assert_eq(cddp_run(&config, far_main, &plan, &error), CDDP_OK, "%s",
                 error.text);
}

/* How each rank ends if only rank 1 has options that are wrong. */
typedef struct alone {
    cddp_code_t codes[3];
    bool named[3]; /* the text names rank 1 */
} alone_t;

static cddp_code_t alone_main(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    alone_t *alone = context;
    const int rank = cddp_group_rank(group);
    const cddp_ddp_config_t config = {.views = views,
                                      .view_count = 2,
                                      .elems = ELEMS,
                                      .options =
                                          rank == 1 ? "{no_key: 1}" : "{}"};
    cddp_ddp_t *ddp = NULL;

    alone->codes[rank] = cddp_ddp_open(group, &config, &ddp, error);
    alone->named[rank] = strncmp(error->text, "rank 1 on ", 10) == 0;
    return CDDP_OK;
}

Test(hook, options_that_are_wrong_on_one_rank_end_all)
{
    alone_t alone = {0};
    cddp_run_config_t config = {.local = 3, .timeout = 20};
    cddp_error_t error = {.text = ""};

    cr_assert_eq(cddp_run(&config, alone_main, &alone, &error), CDDP_OK, "%s",
                 error.text);
    for (int rank = 0; rank < 3; rank++) {
        cr_expect_eq(alone.codes[rank], CDDP_CONFIG, "rank %d", rank);
        cr_expect(alone.named[rank], "rank %d", rank);
    }
}

Test(hook, the_built_in_ones)
{
    const char *const options[] = {"{hook: bf16}", "{hook: fp16}",
                                   "{hook: {powersgd: {start_step: 0}}}"};

    for (int o = 0; o < 3; o++) {
        plan_t plan = {.options = options[o]};
        cddp_error_t error;

        cr_assert_eq(ranks_run(3, &plan, &error), CDDP_OK, "%s", error.text);
        cr_assert_float_eq(plan.first[0], 6, 0.05);
        cr_assert_float_eq(plan.first[1], 6, 0.05);
    }
}

Test(hook, wrong_ones_are_sentences)
{
    int closed = 0;
    cddp_hook_t means = means_table(&closed);
    const cddp_hook_t *hooks[] = {&means, NULL};
    plan_t plan = {.options = "{hook: meens}", .hooks = hooks};
    cddp_error_t error;

    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "did you mean 'means'"), "%s",
                       error.text);
    plan.options = "{hook: means}";
    plan.elems = 13;
    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "13 is no number for me"), "%s",
                       error.text);
    means.turn = NULL;
    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "hook 0 (means)"), "%s", error.text);
    means.turn = means_turn;
    means.place = (cddp_hook_place_t)7;
    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "hook 0 (means) has the place 7"),
                       "%s", error.text);
    means.place = CDDP_HOOK_DEVICE;
    plan.elems = 0;
    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "\"means\" wants gradients in the "
                                          "memory of a GPU"),
                       "%s", error.text);
    means.place = CDDP_HOOK_HOST;
    plan.options = "{local_sgd: {period: 2}}";
    cr_assert_eq(ranks_run(2, &plan, &error), CDDP_CONFIG);
    cr_assert_not_null(strstr(error.text, "averages with cddp_allreduce"), "%s",
                       error.text);
    cr_assert_eq(closed, 0);
}
