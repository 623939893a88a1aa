/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plateau: cuts the learning rate when a metric stops improving, like
 * torch.optim.lr_scheduler.ReduceLROnPlateau. The caller keeps the state
 * (optim_watch_t) and saves it with the run; all functions are pure.
 */
#include <math.h>
#include <string.h>

#include "optim/optim_priv.h"

typedef enum plateau_mode { MODE_AUTO, MODE_MIN, MODE_MAX } plateau_mode_t;

typedef struct plateau_options {
    optim_warmup_t warmup;
    char *metric;
    int mode;     /* a plateau_mode_t */
    int relative; /* index in threshold_modes; 0 is "rel" */
    double factor, threshold, min_lr;
    int64_t patience, cooldown;
} plateau_options_t;

_Static_assert(sizeof(plateau_options_t) <= OPTIM_OPTIONS_MAX &&
                   offsetof(plateau_options_t, warmup) == 0,
               "options");

static const char *const modes[] = {"auto", "min", "max", NULL};
static const char *const threshold_modes[] = {"rel", "abs", NULL};

#define COUNT_ROW(field, value, text)                                      \
    {                                                                      \
        .name = #field, .type = OPT_INT,                                   \
        .offset = offsetof(plateau_options_t, field), .fallback = (value), \
        .min = 0, .max = 1e9, .unit = "evaluations", .help = (text)        \
    }

static const opt_row_t plateau_rows[] = {
    {.name = "warmup_steps",
     .type = OPT_INT,
     .offset = 0,
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .unit = "steps",
     .help = "Number of updates of linear warm-up to the optimizer's rate"},
    {.name = "metric",
     .type = OPT_TEXT,
     .offset = offsetof(plateau_options_t, metric),
     .fallback = "loss",
     .help = "The metric: loss or another number of the evaluations, by its "
             "name in metrics.jsonl; or train_loss, the mean of each epoch's "
             "training losses"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(plateau_options_t, mode),
     .fallback = "auto",
     .choices = modes,
     .help = "min: less is better; max: more is better; auto: max for "
             "accuracy, top5, miou, iou1 and r2, else min"},
    OPTIM_REAL(plateau_options_t, factor, "0.1", 0, 1,
               "Factor by which the rate is multiplied when it is reduced"),
    COUNT_ROW(patience, "10",
              "The rate is reduced after more than this number of evaluations "
              "in a row without improvement"),
    OPTIM_REAL(plateau_options_t, threshold, "1e-4", 0, 1e30,
               "Smallest difference from the best value that counts as an "
               "improvement"),
    {.name = "threshold_mode",
     .type = OPT_CHOICE,
     .offset = offsetof(plateau_options_t, relative),
     .fallback = "rel",
     .choices = threshold_modes,
     .help = "rel: the threshold is relative to the best value; abs: it is "
             "absolute"},
    COUNT_ROW(cooldown, "0",
              "Number of evaluations after a reduction that do not count for "
              "patience"),
    OPTIM_REAL(plateau_options_t, min_lr, "0", 0, 1e6,
               "The rate is never reduced below this"),
    {.name = NULL},
};

static double plateau_lr(const void *options, const optim_span_t *span,
                         double lr, int64_t step)
{
    (void)options;
    (void)span;
    (void)step;
    return lr;
}

/* Return whether larger values of metric [name] are better. The name may begin
 * with "LOSS_". */
static bool more_is_better(const char *name)
{
    static const char *const better[] = {"accuracy", "top", "miou", "iou",
                                         "r2"};
    const char *last = strrchr(name, '_');

    last = last == NULL ? name : last + 1;
    for (size_t i = 0; i < sizeof better / sizeof better[0]; i++)
        if (strncmp(last, better[i], strlen(better[i])) == 0)
            return true;
    return false;
}

static bool is_better(const plateau_options_t *plateau, double value,
                      const optim_watch_t *watch)
{
    const bool most = plateau->mode == MODE_AUTO
                          ? more_is_better(plateau->metric)
                          : plateau->mode == MODE_MAX;
    const double by = plateau->threshold, best = watch->best;

    if (watch->seen == 0)
        return isfinite(value);
    if (plateau->relative == 0)
        return most ? value > best * (1 + by) : value < best * (1 - by);
    return most ? value > best + by : value < best - by;
}

static bool plateau_watch(const void *options, double value,
                          optim_watch_t *watch)
{
    const plateau_options_t *plateau = options;

    watch->bad++;
    if (is_better(plateau, value, watch)) {
        watch->best = value;
        watch->seen = 1;
        watch->bad = 0;
    }
    if (watch->rest > 0) {
        watch->rest--;
        watch->bad = 0;
    }
    if (watch->bad <= plateau->patience)
        return false;
    watch->cuts++;
    watch->rest = plateau->cooldown;
    watch->bad = 0;
    return true;
}

static double plateau_cut(const void *options, const optim_watch_t *watch,
                          double lr)
{
    const plateau_options_t *plateau = options;
    const double cut = lr * pow(plateau->factor, (double)watch->cuts);

    return watch->cuts == 0 ? lr : fmin(lr, fmax(cut, plateau->min_lr));
}

static const char *plateau_metric(const void *options)
{
    const plateau_options_t *plateau = options;

    return plateau->metric;
}

const optim_schedule_kind_t optim_schedule_plateau = {
    .row =
        {.name = "plateau",
         .help =
             "The rate is multiplied by a factor when a metric stops improving",
         .options = plateau_rows},
    .lr = plateau_lr,
    .metric = plateau_metric,
    .watch = plateau_watch,
    .cut = plateau_cut,
};
