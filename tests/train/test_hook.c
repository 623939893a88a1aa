/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs with comm hooks: they learn; the ranks keep equal bits; what a
 * hook keeps from step to step survives an interruption; a run that goes on
 * with another hook drops it and says so.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "train/harness.h"

#define SAMPLES 101

static const char *const hooks[] = {
    "ddp.hook=fp16",
    "ddp.hook={bf16: {error_feedback: true}}",
    "ddp.hook={powersgd: {start_step: 2}}",
    "ddp.hook={powersgd: {rank: 3, start_step: 0}}",
};

enum { HOOKS = sizeof hooks / sizeof hooks[0] };

/* Buckets are so small that every layer has a bucket of its own. */
static void hook_open(harness_t *harness, const char *hook)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = hook;
    harness->settings[1] = "ddp.check_every=1 steps";
    harness->settings[2] = "ddp.first_bucket_mb=0.001";
    harness->settings[3] = "ddp.last_bucket_mb=0.001";
}

Test(hook, runs_learn_and_ranks_agree, .timeout = 60)
{
    for (int h = 0; h < HOOKS; h++)
        for (int ranks = 1; ranks <= 4; ranks++) {
            train_outcome_t out;
            harness_t harness;

            hook_open(&harness, hooks[h]);
            harness_run_ok(&harness, ranks, &out);
            cr_assert_gt(out.accuracy, 0.9, "%s, %d ranks: %g", hooks[h], ranks,
                         out.accuracy);
            cr_assert_eq(out.step, 15);
            harness_close(&harness);
        }
}

/* With ZeRO-1 each rank takes its shard of the hook's sums: the result has the
 * bits of a run without shards. */
Test(hook, works_with_shards, .timeout = 60)
{
    for (int h = 0; h < HOOKS; h++) {
        train_outcome_t whole, shards;
        harness_t harness;

        hook_open(&harness, hooks[h]);
        harness_run_ok(&harness, 3, &whole);
        harness_close(&harness);
        hook_open(&harness, hooks[h]);
        harness.settings[4] = "ddp.zero=1";
        harness_run_ok(&harness, 3, &shards);
        cr_assert_eq(memcmp(&whole.loss, &shards.loss, sizeof(double)), 0,
                     "%s: %.17g, not %.17g", hooks[h], shards.loss, whole.loss);
        harness_close(&harness);
    }
}

/* ---- interruption -------------------------------------------------------- */

Test(hook, interrupted_runs_end_with_the_same_bits, .timeout = 60)
{
    for (int h = 0; h < HOOKS; h++)
        for (int ranks = 1; ranks <= 3; ranks++) {
            train_outcome_t straight, stopped;
            harness_t harness;

            hook_open(&harness, hooks[h]);
            harness_run_ok(&harness, ranks, &straight);
            harness_close(&harness);
            hook_open(&harness, hooks[h]);
            cr_assert_gt(harness_run_interrupted(&harness, 5 * ranks,
                                                 (int[]){ranks, ranks},
                                                 &stopped),
                         1);
            cr_assert_eq(memcmp(&stopped.loss, &straight.loss, sizeof(double)),
                         0, "%s, %d ranks: %.17g, not %.17g", hooks[h], ranks,
                         stopped.loss, straight.loss);
            harness_close(&harness);
        }
}

/* Redirect the log to a file from here on. */
static void log_divert(const harness_t *harness)
{
    char *path = str_printf("%s/log", harness->dir);

    cr_assert_not_null(freopen(path, "w", stderr));
    free(path);
}

static bool log_has(const harness_t *harness, const char *words)
{
    char *path = str_printf("%s/log", harness->dir);
    err_t err = ERR_INIT;
    char *text = NULL;
    bool has;

    fflush(stderr);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    has = strstr(text, words) != NULL;
    free(text);
    free(path);
    return has;
}

Test(hook, another_number_of_ranks_drops_what_was_kept_back, .timeout = 60)
{
    train_outcome_t out;
    harness_t harness;

    hook_open(&harness, hooks[HOOKS - 1]);
    log_divert(&harness);
    cr_assert_gt(harness_run_interrupted(&harness, 20, (int[]){4, 2}, &out), 1);
    cr_assert(log_has(&harness, "was written by 4 ranks and this run has 2"));
    cr_assert_gt(out.accuracy, 0.9);
    harness_close(&harness);
}

Test(hook, another_hook_begins_with_nothing, .timeout = 60)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    hook_open(&harness, "ddp.hook=none");
    log_divert(&harness);
    harness_interrupt(&harness, 12);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_REQUEUE);
    harness.signal = NULL;
    harness.settings[0] = hooks[HOOKS - 1];
    harness_run_ok(&harness, 2, &out);
    cr_assert(log_has(&harness, "without this comm hook"));
    /* A run without a hook ignores the hook's state in the checkpoint. */
    harness.settings[0] = "ddp.hook=none";
    harness.settings[4] = "train.epochs=4";
    harness_run_ok(&harness, 2, &out);
    harness_close(&harness);
}

/* ---- choosing ------------------------------------------------------------ */

typedef struct count {
    int steps;
} count_t;

static err_code_t count_open(const ddp_hook_plan_t *plan, void **state,
                             err_t *err)
{
    (void)plan;
    (void)err;
    *state = calloc(1, sizeof(count_t));
    return ERR_OK;
}

static atomic_int counted;

static void count_begin(void *state, int64_t step)
{
    count_t *count = state;

    if (step == count->steps)
        atomic_fetch_add(&counted, 1);
    count->steps++;
}

static err_code_t count_turn(void *state, const ddp_hook_bucket_t *bucket,
                             int turn, ddp_wire_t *wire, err_t *err)
{
    (void)state;
    return turn == 0 ? ddp_wire_sum(wire, bucket->grads, bucket->count,
                                    COMM_FLOAT32, err)
                     : ddp_wire_wait(wire, err);
}

static const opt_row_t no_options[] = {{.name = NULL}};

static const ddp_hook_ops_t count_hook = {
    .row = {.name = "count", .help = "Count steps", .options = no_options},
    .turns = 2,
    .open = count_open,
    .close = free,
    .begin = count_begin,
    .turn = count_turn};

static const ddp_hook_ops_t *const own_hooks[] = {&count_hook, NULL};

Test(hook, a_program_may_bring_its_own)
{
    train_outcome_t plain, out;
    harness_t harness;

    hook_open(&harness, "ddp.hook=none");
    harness_run_ok(&harness, 3, &plain);
    harness_close(&harness);
    hook_open(&harness, "ddp.hook=count");
    harness.hooks = own_hooks;
    harness_run_ok(&harness, 3, &out);
    cr_assert_eq(atomic_load(&counted), 45);
    cr_assert_eq(memcmp(&plain.loss, &out.loss, sizeof(double)), 0);
    harness_close(&harness);
}

Test(hook, an_unknown_one_is_refused)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    hook_open(&harness, "ddp.hook=powersdg");
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "did you mean 'powersgd'"), "%s",
                       err.text);
    harness_close(&harness);
}
