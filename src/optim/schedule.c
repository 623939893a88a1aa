/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Schedules of the learning rate: choosing one, and the warm-up that all of
 * them can have. The shapes are in schedule_kinds.c. */
#include "base/mem.h"
#include "optim/optim_priv.h"

struct optim_schedule {
    const optim_schedule_kind_t *kind;
    optim_span_t span;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

static const optim_schedule_kind_t *const kinds[] = {
    &optim_schedule_constant,     &optim_schedule_step,
    &optim_schedule_multistep,    &optim_schedule_exponential,
    &optim_schedule_cosine,       &optim_schedule_restarts,
    &optim_schedule_one_cycle,    &optim_schedule_polynomial,
    &optim_schedule_inverse_sqrt, &optim_schedule_plateau,
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static void kind_rows(const opt_pick_row_t *rows[KIND_COUNT])
{
    for (int i = 0; i < KIND_COUNT; i++)
        rows[i] = &kinds[i]->row;
}

const opt_row_t *optim_schedule_option_rows(const char *name)
{
    const opt_pick_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    return opt_pick_rows(rows, KIND_COUNT, name);
}

static err_code_t schedule_read(optim_schedule_t *schedule, const tree_t *tree,
                                err_t *err)
{
    const opt_pick_row_t *rows[KIND_COUNT];
    opt_pick_t choice = {0};
    char at[OPT_PLACE_TEXT];
    err_code_t rc;

    kind_rows(rows);
    rc = opt_pick_read(tree,
                       &(opt_pick_table_t){"schedule", NULL, rows, KIND_COUNT},
                       schedule->options, &choice, err);
    if (rc != ERR_OK)
        return rc;
    schedule->kind = kinds[choice.index];
    if (schedule->kind->validate == NULL)
        return ERR_OK;
    rc = schedule->kind->validate(schedule->options, err);
    if (rc != ERR_OK)
        err_prefix(err, "%s", tree_place_format(choice.place, at, sizeof at));
    return rc;
}

err_code_t optim_schedule_open(const tree_t *tree, const optim_span_t *span,
                               optim_schedule_t **out, err_t *err)
{
    tree_t *constant = tree_new(TREE_SCALAR, "constant", (tree_place_t){0});
    optim_schedule_t *schedule = NULL;
    err_code_t rc;

    if (tree == NULL || tree_kind(tree) == TREE_NULL)
        tree = constant;
    rc = mem_new(optim_schedule_t, 1, "the schedule", &schedule, err);
    if (rc != ERR_OK)
        goto end;
    schedule->span = *span;
    if (span->epoch_steps < 1)
        schedule->span.epoch_steps = 1;
    rc = schedule_read(schedule, tree, err);
    if (rc != ERR_OK)
        optim_schedule_close(schedule);
    else
        *out = schedule;
end:
    tree_free(constant);
    return rc;
}

void optim_schedule_close(optim_schedule_t *schedule)
{
    if (schedule == NULL)
        return;
    if (schedule->kind != NULL)
        opt_free(schedule->kind->row.options, schedule->options);
    mem_free(schedule);
}

/* Update 0 already has a positive rate (1/warmup of the full rate). The first
 * update after warm-up has the full rate. */
double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step)
{
    const optim_schedule_kind_t *kind = schedule->kind;
    const optim_warmup_t *options = (const void *)schedule->options;
    const int64_t warmup = options->warmup_steps;
    optim_span_t span = schedule->span;
    double ramp = 1;

    if (kind->warmup == OPTIM_WARMUP_OWN)
        return kind->lr(options, &span, lr, step);
    if (step < warmup)
        ramp = (double)(step + 1) / (double)warmup;
    if (kind->warmup == OPTIM_WARMUP_OVER)
        return ramp * kind->lr(options, &span, lr, step);
    if (step < warmup)
        return ramp * lr;
    span.steps -= warmup;
    return kind->lr(options, &span, lr, step - warmup);
}

const char *optim_schedule_metric(const optim_schedule_t *schedule)
{
    return schedule->kind->metric == NULL
               ? NULL
               : schedule->kind->metric(schedule->options);
}

bool optim_schedule_watch(const optim_schedule_t *schedule, double value,
                          optim_watch_t *watch)
{
    return schedule->kind->watch(schedule->options, value, watch);
}

double optim_schedule_cut(const optim_schedule_t *schedule,
                          const optim_watch_t *watch, double lr)
{
    return schedule->kind->cut == NULL
               ? lr
               : schedule->kind->cut(schedule->options, watch, lr);
}

void optim_schedule_document(str_buf_t *out)
{
    const opt_pick_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    str_buf_add(out, "## Schedules\n\n");
    opt_pick_document(rows, KIND_COUNT, "schedule", out);
}
