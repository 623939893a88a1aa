/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Learning-rate schedules. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "optim/optim.h"

static err_code_t open_try(const char *yaml, int64_t steps,
                           optim_schedule_t **out, err_t *err)
{
    const optim_span_t span = {.steps = steps, .epoch_steps = 10};
    tree_t *tree = NULL;
    err_code_t rc = conf_parse("s.yaml", yaml, &tree, err);

    cr_assert_eq(rc, ERR_OK, "%s", err->text);
    rc = optim_schedule_open(tree_get(tree, "schedule"), &span, out, err);
    tree_free(tree);
    return rc;
}

static double rate(const char *yaml, int64_t steps, double lr, int64_t step)
{
    optim_schedule_t *schedule = NULL;
    err_t err = ERR_INIT;
    double result;

    cr_assert_eq(open_try(yaml, steps, &schedule, &err), ERR_OK, "%s",
                 err.text);
    result = optim_schedule_lr(schedule, lr, step);
    optim_schedule_close(schedule);
    return result;
}

Test(schedule, constant_is_the_default)
{
    cr_expect_eq(rate("schedule: constant", 10, 0.3, 9), 0.3);
    cr_expect_eq(rate("schedule: {constant: }", 10, 0.3, 0), 0.3);
    cr_expect_eq(rate("schedule:", 10, 0.3, 5), 0.3);
    cr_expect_eq(rate("other: 1", 10, 0.3, 5), 0.3);
}

Test(schedule, constant_warms_up)
{
    const char *yaml = "schedule: {constant: {warmup_steps: 4}}";

    cr_expect_eq(rate(yaml, 10, 2, 0), 0.5);
    cr_expect_eq(rate(yaml, 10, 2, 3), 2);
    cr_expect_eq(rate(yaml, 10, 2, 9), 2);
}

Test(schedule, step_counts_epochs_or_steps)
{
    const char *yaml = "schedule: {step: {every: 2 epochs, gamma: 0.5}}";

    cr_expect_eq(rate(yaml, 100, 2, 0), 2);
    cr_expect_eq(rate(yaml, 100, 2, 19), 2);
    cr_expect_eq(rate(yaml, 100, 2, 20), 1);
    cr_expect_eq(rate(yaml, 100, 2, 59), 0.5);
    yaml = "schedule: {step: {every: 3 steps}}";
    cr_expect_eq(rate(yaml, 100, 2, 2), 2);
    cr_expect_float_eq(rate(yaml, 100, 2, 3), 0.2, 1e-12);
    cr_expect_float_eq(rate(yaml, 100, 2, 8), 0.02, 1e-12);
}

/* Warm-up multiplies the rate of this schedule; it does not shift the cuts. */
Test(schedule, warmup_does_not_move_the_steps)
{
    const char *yaml =
        "schedule: {step: {every: 2 steps, gamma: 0.5, warmup_steps: 4}}";

    cr_expect_eq(rate(yaml, 100, 8, 0), 2);
    cr_expect_eq(rate(yaml, 100, 8, 1), 4);
    cr_expect_eq(rate(yaml, 100, 8, 2), 3);
    cr_expect_eq(rate(yaml, 100, 8, 4), 2);
}

Test(schedule, multistep)
{
    const char *yaml =
        "schedule: {multistep: {milestones: [3, 1], gamma: 0.5}}";

    cr_expect_eq(rate(yaml, 100, 2, 9), 2);
    cr_expect_eq(rate(yaml, 100, 2, 10), 1);
    cr_expect_eq(rate(yaml, 100, 2, 30), 0.5);
    cr_expect_eq(rate(yaml, 100, 2, 99), 0.5);
    yaml = "schedule: {multistep: {milestones: 3, unit: steps}}";
    cr_expect_eq(rate(yaml, 100, 2, 2), 2);
    cr_expect_float_eq(rate(yaml, 100, 2, 3), 0.2, 1e-12);
}

Test(schedule, exponential)
{
    const char *yaml = "schedule: {exponential: {gamma: 0.5}}";

    cr_expect_eq(rate(yaml, 100, 2, 9), 2);
    cr_expect_eq(rate(yaml, 100, 2, 10), 1);
    cr_expect_eq(rate(yaml, 100, 2, 25), 0.5);
    yaml = "schedule: {exponential: {gamma: 0.5, every: 1 steps}}";
    cr_expect_eq(rate(yaml, 100, 2, 3), 0.25);
}

Test(schedule, one_cycle)
{
    const char *yaml = "schedule: {one_cycle: {pct_start: 0.5, div_factor: 4, "
                       "final_div_factor: 2}}";

    cr_expect_eq(rate(yaml, 10, 2, 0), 0.5);
    cr_expect_float_eq(rate(yaml, 10, 2, 2), 1.25, 1e-12);
    cr_expect_eq(rate(yaml, 10, 2, 4), 2);
    cr_expect_eq(rate(yaml, 10, 2, 9), 0.25);
    cr_expect_eq(rate(yaml, 10, 2, 90), 0.25);
    /* warmup_steps is the length of the rise */
    yaml = "schedule: {one_cycle: {warmup_steps: 3, div_factor: 4}}";
    cr_expect_eq(rate(yaml, 10, 2, 0), 0.5);
    cr_expect_float_eq(rate(yaml, 10, 2, 1), 1.25, 1e-12);
    cr_expect_eq(rate(yaml, 10, 2, 2), 2);
    cr_expect_lt(rate(yaml, 10, 2, 3), 2);
    /* too few steps to rise or to fall */
    cr_expect_lt(rate("schedule: one_cycle", 2, 2, 1), 1e-4);
    cr_expect_leq(rate("schedule: one_cycle", 1, 2, 0), 2);
    cr_expect_eq(rate("schedule: {one_cycle: {pct_start: 1}}", 10, 2, 9), 2);
}

Test(schedule, polynomial)
{
    const char *yaml = "schedule: polynomial";

    cr_expect_eq(rate(yaml, 10, 2, 0), 2);
    cr_expect_float_eq(rate(yaml, 10, 2, 5), 1, 1e-12);
    cr_expect_eq(rate(yaml, 10, 2, 10), 0);
    cr_expect_eq(rate(yaml, 10, 2, 11), 0);
    yaml = "schedule: {polynomial: {power: 2, min_lr: 1, warmup_steps: 2}}";
    cr_expect_eq(rate(yaml, 12, 2, 0), 1);
    cr_expect_eq(rate(yaml, 12, 2, 2), 2);
    cr_expect_float_eq(rate(yaml, 12, 2, 7), 1.25, 1e-12);
    cr_expect_eq(rate(yaml, 12, 2, 12), 1);
}

Test(schedule, inverse_sqrt)
{
    const char *yaml = "schedule: {inverse_sqrt: {warmup_steps: 4}}";

    cr_expect_eq(rate(yaml, 99, 2, 0), 0.5);
    cr_expect_eq(rate(yaml, 99, 2, 3), 2);
    cr_expect_float_eq(rate(yaml, 99, 2, 15), 1, 1e-12);
    cr_expect_eq(rate("schedule: inverse_sqrt", 99, 2, 0), 2);
    cr_expect_float_eq(rate("schedule: inverse_sqrt", 99, 2, 3), 1, 1e-12);
}

Test(schedule, cosine_without_warmup)
{
    const char *yaml = "schedule: cosine";

    cr_expect_eq(rate(yaml, 100, 2, 0), 2);
    cr_expect_float_eq(rate(yaml, 100, 2, 25), 1 + sqrt(0.5), 1e-12);
    cr_expect_float_eq(rate(yaml, 100, 2, 50), 1, 1e-12);
    cr_expect_float_eq(rate(yaml, 100, 2, 75), 1 - sqrt(0.5), 1e-12);
    cr_expect_float_eq(rate(yaml, 100, 2, 100), 0, 1e-12);
    cr_expect_float_eq(rate(yaml, 100, 2, 1000), 0, 1e-12);
}

Test(schedule, restarts_begin_at_the_full_rate)
{
    const char *yaml = "schedule: {restarts: {period: 4 steps, min_lr: 1}}";

    cr_expect_eq(rate(yaml, 99, 3, 0), 3);
    cr_expect_float_eq(rate(yaml, 99, 3, 2), 2, 1e-12);
    cr_expect_gt(rate(yaml, 99, 3, 3), 1);
    cr_expect_eq(rate(yaml, 99, 3, 4), 3);
    cr_expect_eq(rate(yaml, 99, 3, INT64_C(4000000000000000)), 3);
    /* periods of 10, 30 and 90 steps after the warm-up */
    yaml = "schedule: {restarts: {period: 1 epoch, mult: 3, warmup_steps: 2}}";
    cr_expect_eq(rate(yaml, 99, 2, 0), 1);
    cr_expect_eq(rate(yaml, 99, 2, 2), 2);
    cr_expect_float_eq(rate(yaml, 99, 2, 7), 1, 1e-12);
    cr_expect_eq(rate(yaml, 99, 2, 12), 2);
    cr_expect_float_eq(rate(yaml, 99, 2, 27), 1, 1e-12);
    cr_expect_eq(rate(yaml, 99, 2, 42), 2);
    cr_expect_float_eq(rate(yaml, 99, 2, 87), 1, 1e-12);
    yaml = "schedule: {restarts: {period: 1 step, mult: 1000000}}";
    cr_expect_eq(rate(yaml, 99, 2, 1), 2);
    cr_expect_leq(rate(yaml, 99, 2, INT64_MAX), 2);
}

Test(schedule, cosine_with_warmup_and_floor)
{
    const char *yaml = "schedule: {cosine: {warmup_steps: 4, min_lr: 0.5}}";

    cr_expect_eq(rate(yaml, 104, 2, 0), 0.5);
    cr_expect_eq(rate(yaml, 104, 2, 1), 1);
    cr_expect_eq(rate(yaml, 104, 2, 3), 2);
    cr_expect_eq(rate(yaml, 104, 2, 4), 2);
    cr_expect_float_eq(rate(yaml, 104, 2, 54), 1.25, 1e-12);
    cr_expect_float_eq(rate(yaml, 104, 2, 104), 0.5, 1e-12);
}

Test(schedule, warmup_longer_than_the_run)
{
    const char *yaml = "schedule: {cosine: {warmup_steps: 10}}";

    cr_expect_eq(rate(yaml, 5, 1, 4), 0.5);
    cr_expect_eq(rate(yaml, 10, 1, 9), 1);
    cr_expect_float_eq(rate(yaml, 10, 1, 10), 0, 1e-12);
}

static optim_schedule_t *plateau_open(const char *yaml)
{
    optim_schedule_t *schedule = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(open_try(yaml, 100, &schedule, &err), ERR_OK, "%s", err.text);
    return schedule;
}

Test(schedule, plateau_cuts_what_gets_no_better)
{
    optim_schedule_t *schedule = plateau_open(
        "schedule: {plateau: {patience: 1, factor: 0.5, cooldown: 1, min_lr: "
        "0.3, warmup_steps: 2}}");
    optim_watch_t watch = {0};

    cr_expect_str_eq(optim_schedule_metric(schedule), "loss");
    cr_expect_eq(optim_schedule_lr(schedule, 1, 0), 0.5);
    cr_expect_eq(optim_schedule_cut(schedule, &watch, 0.1), 0.1);
    cr_expect_not(optim_schedule_watch(schedule, NAN, &watch));
    cr_expect_eq(watch.bad, 1);
    cr_expect_not(optim_schedule_watch(schedule, 3, &watch));
    cr_expect_eq(watch.best, 3);
    cr_expect_not(optim_schedule_watch(schedule, 4, &watch));
    cr_expect(optim_schedule_watch(schedule, 3, &watch));
    cr_expect_eq(optim_schedule_cut(schedule, &watch, 1), 0.5);
    /* The first evaluation after a cut is not counted (cooldown). */
    cr_expect_not(optim_schedule_watch(schedule, 3, &watch));
    cr_expect_not(optim_schedule_watch(schedule, INFINITY, &watch));
    cr_expect(optim_schedule_watch(schedule, NAN, &watch));
    cr_expect_eq(optim_schedule_cut(schedule, &watch, 1), 0.3);
    cr_expect_eq(optim_schedule_cut(schedule, &watch, 0.2), 0.2);
    optim_schedule_close(schedule);
}

Test(schedule, plateau_knows_what_is_better)
{
    static const struct {
        const char *options;
        bool more;
    } all[] = {{"{metric: accuracy}", true},
               {"{metric: kind_top5}", true},
               {"{metric: a_r2}", true},
               {"{metric: a_mae}", false},
               {"{metric: train_loss}", false},
               {"{mode: max}", true},
               {"{metric: accuracy, mode: min}", false}};
    char yaml[128];

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        optim_watch_t watch = {0};
        optim_schedule_t *schedule;

        snprintf(yaml, sizeof yaml, "schedule: {plateau: %s}", all[i].options);
        schedule = plateau_open(yaml);
        optim_schedule_watch(schedule, 1, &watch);
        optim_schedule_watch(schedule, 2, &watch);
        cr_expect_eq(watch.bad, all[i].more ? 0 : 1, "%s", yaml);
        optim_schedule_close(schedule);
    }
}

Test(schedule, others_watch_nothing)
{
    optim_schedule_t *schedule = plateau_open("schedule: cosine");
    const optim_watch_t watch = {.cuts = 3};

    cr_expect_null(optim_schedule_metric(schedule));
    cr_expect_eq(optim_schedule_cut(schedule, &watch, 0.7), 0.7);
    optim_schedule_close(schedule);
}

Test(schedule, every_sentence_has_its_place)
{
    static const char *const wrongs[][2] = {
        {"schedule: cosin\n",
         "s.yaml:1:11: unknown schedule 'cosin'; did you mean 'cosine'?"},
        {"schedule: {cosine: {warmup: 3}}\n", "s.yaml:1:21: unknown key"},
        {"schedule: {cosine: {warmup_steps: -3}}\n",
         "s.yaml:1:35: schedule.cosine.warmup_steps"},
        {"schedule: {constant: {lr: 3}}\n", "s.yaml:1:23: unknown key 'lr'"},
        {"schedule: step\n", "s.yaml:1:11: schedule.step.every is missing"},
        {"schedule: {step: {every: never}}\n",
         "s.yaml:1:12: the schedule's 'every' counts epochs or steps"},
        {"schedule: {step: {every: 5 min}}\n",
         "s.yaml:1:12: the schedule's 'every' counts epochs or steps"},
        {"schedule: restarts\n",
         "s.yaml:1:11: schedule.restarts.period is missing"},
        {"schedule: {restarts: {period: never}}\n",
         "s.yaml:1:12: the schedule's 'period' counts epochs or steps"},
        {"schedule: {restarts: {period: 3 steps, mult: 0}}\n",
         "s.yaml:1:46: schedule.restarts.mult"},
        {"schedule: {exponential: {every: 5 steps}}\n",
         "s.yaml:1:25: schedule.exponential.gamma is missing"},
        {"schedule: multistep\n",
         "s.yaml:1:11: schedule.multistep.milestones is missing"},
        {"schedule: {multistep: {milestones: [1, x]}}\n",
         "s.yaml:1:40: schedule.multistep.milestones"},
        {"schedule: {one_cycle: {pct_start: 2}}\n",
         "s.yaml:1:35: schedule.one_cycle.pct_start"},
        {"schedule: [cosine]\n", "s.yaml:1:11: schedule is a name or a map"},
    };

    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        optim_schedule_t *schedule = NULL;
        err_t err = ERR_INIT;

        cr_expect_eq(open_try(wrongs[i][0], 10, &schedule, &err), ERR_CONFIG);
        cr_expect_null(schedule);
        cr_expect_eq(strncmp(err.text, wrongs[i][1], strlen(wrongs[i][1])), 0,
                     "expected: %s\n   found: %s", wrongs[i][1], err.text);
        optim_schedule_close(schedule);
    }
}
