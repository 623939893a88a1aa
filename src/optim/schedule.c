/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Learning-rate schedules: pure functions of the update's number, so that a
 * resumed run needs no state of theirs. */
#include <math.h>
#include <stddef.h>

#include "base/mem.h"
#include "optim/optim_priv.h"

struct optim_schedule {
    const optim_schedule_kind_t *kind;
    int64_t steps;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

/* ---- constant ------------------------------------------------------------ */

static const opt_row_t constant_rows[] = {{.name = NULL}};

static double constant_lr(const void *options, int64_t steps, double lr,
                          int64_t step)
{
    (void)options;
    (void)steps;
    (void)step;
    return lr;
}

static const optim_schedule_kind_t kind_constant = {
    .row = {.name = "constant",
            .help = "The optimizer's rate, always",
            .options = constant_rows},
    .lr = constant_lr,
};

/* ---- cosine -------------------------------------------------------------- */

typedef struct cosine_options {
    int64_t warmup_steps;
    double min_lr;
} cosine_options_t;

_Static_assert(sizeof(cosine_options_t) <= OPTIM_OPTIONS_MAX, "options");

static const opt_row_t cosine_rows[] = {
    {.name = "warmup_steps",
     .type = OPT_INT,
     .offset = offsetof(cosine_options_t, warmup_steps),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .unit = "steps",
     .help = "Updates during which the rate grows in a line to the "
             "optimizer's"},
    {.name = "min_lr",
     .type = OPT_REAL,
     .offset = offsetof(cosine_options_t, min_lr),
     .fallback = "0",
     .min = 0,
     .max = 1e6,
     .help = "Rate at the end of the run"},
    {.name = NULL},
};

/* Update 0 already learns (1/warmup of the rate); the first one after warm-up
 * has the full rate, and [min_lr] would be reached at update [steps]. */
static double cosine_lr(const void *options, int64_t steps, double lr,
                        int64_t step)
{
    const cosine_options_t *cosine = options;
    const int64_t warmup = cosine->warmup_steps;
    double done = 1;

    if (step < warmup)
        return lr * (double)(step + 1) / (double)warmup;
    if (step < steps)
        done = (double)(step - warmup) / (double)(steps - warmup);
    return cosine->min_lr + (lr - cosine->min_lr) * 0.5 *
                                (1 + cos(3.14159265358979323846 * done));
}

static const optim_schedule_kind_t kind_cosine = {
    .row = {.name = "cosine",
            .help = "Warm-up in a line, then down along half a cosine over the "
                    "rest of the run",
            .options = cosine_rows},
    .lr = cosine_lr,
};

/* ---- all of them --------------------------------------------------------- */

static const optim_schedule_kind_t *const kinds[] = {
    &kind_constant,
    &kind_cosine,
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static void kind_rows(const optim_row_t *rows[KIND_COUNT])
{
    for (int i = 0; i < KIND_COUNT; i++)
        rows[i] = &kinds[i]->row;
}

err_code_t optim_schedule_open(const tree_t *tree, int64_t steps,
                               optim_schedule_t **out, err_t *err)
{
    const optim_row_t *rows[KIND_COUNT];
    optim_schedule_t *schedule;
    optim_choice_t choice = {0};
    void *block;
    err_code_t code;

    code = mem_alloc(sizeof *schedule, "the schedule", &block, err);
    if (code != ERR_OK)
        return code;
    schedule = block;
    schedule->steps = steps;
    kind_rows(rows);
    if (tree != NULL && tree_kind(tree) != TREE_NULL)
        code = optim_row_read(tree, "schedule", NULL, rows, KIND_COUNT,
                              schedule->options, &choice, err);
    if (code != ERR_OK) {
        mem_free(schedule);
        return code;
    }
    schedule->kind = kinds[choice.index];
    *out = schedule;
    return ERR_OK;
}

void optim_schedule_close(optim_schedule_t *schedule)
{
    if (schedule == NULL)
        return;
    opt_free(schedule->kind->row.options, schedule->options);
    mem_free(schedule);
}

double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step)
{
    return schedule->kind->lr(schedule->options, schedule->steps, lr, step);
}

void optim_schedule_document(str_buf_t *out)
{
    const optim_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    str_buf_add(out, "## Schedules\n\n");
    optim_rows_document(rows, KIND_COUNT, "schedule", out);
}
