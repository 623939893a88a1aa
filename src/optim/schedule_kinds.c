/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The shapes of schedules: pure functions of the number of the update, so a
 * resumed run needs no state for them. Shapes that torch.optim.lr_scheduler
 * has, too, give equal rates for each update.
 */
#include <math.h>
#include <stddef.h>

#include "optim/optim_priv.h"

#define PI 3.14159265358979323846

/* Option row of the warm-up, with which every options struct begins. */
#define WARMUP_ROW(text)                                                       \
    {                                                                          \
        .name = "warmup_steps", .type = OPT_INT, .offset = 0, .fallback = "0", \
        .min = 0, .max = 1e15, .unit = "steps", .help = (text)                 \
    }
#define WARMUP_BEFORE                                                       \
    WARMUP_ROW("Number of updates in which the rate grows linearly to the " \
               "optimizer's rate; the schedule covers the rest of the run")
#define WARMUP_OVER                                                            \
    WARMUP_ROW("Number of updates at the beginning in which the rate is also " \
               "multiplied by a factor that grows linearly to 1")

#define FITS(type)                                      \
    _Static_assert(sizeof(type) <= OPTIM_OPTIONS_MAX && \
                       offsetof(type, warmup) == 0,     \
                   "options")

/* The part of the span that is done, from 0 to 1. */
static double share(const optim_span_t *span, int64_t step)
{
    return step < span->steps ? (double)step / (double)span->steps : 1;
}

/* ---- constant ------------------------------------------------------------ */

static const opt_row_t constant_rows[] = {WARMUP_BEFORE, {.name = NULL}};

static double constant_lr(const void *options, const optim_span_t *span,
                          double lr, int64_t step)
{
    (void)options;
    (void)span;
    (void)step;
    return lr;
}

const optim_schedule_kind_t optim_schedule_constant = {
    .row = {.name = "constant",
            .help = "The rate is the optimizer's",
            .options = constant_rows},
    .lr = constant_lr,
};

/* ---- step, exponential --------------------------------------------------- */

typedef struct decay_options {
    optim_warmup_t warmup;
    opt_every_t every;
    double gamma;
} decay_options_t;

FITS(decay_options_t);

#define DECAY_ROWS(every_, gamma_)                                           \
    WARMUP_OVER,                                                             \
        {.name = "every",                                                    \
         .type = OPT_EVERY,                                                  \
         .offset = offsetof(decay_options_t, every),                         \
         .fallback = (every_),                                               \
         .help = "Interval between two changes, such as 30 epochs"},         \
        OPTIM_REAL(decay_options_t, gamma, gamma_, 0, 1e6,                   \
                   "Factor by which the rate is multiplied at each change"), \
    {                                                                        \
        .name = NULL                                                         \
    }

static const opt_row_t step_rows[] = {DECAY_ROWS(NULL, "0.1")};
static const opt_row_t exponential_rows[] = {DECAY_ROWS("1 epoch", NULL)};

static err_code_t every_check(const opt_every_t *every, const char *key,
                              err_t *err)
{
    if ((every->unit != OPT_STEPS && every->unit != OPT_EPOCHS) ||
        !(every->value > 0))
        return err_set(err, ERR_CONFIG,
                       "the schedule's '%s' counts epochs or steps, such as 30 "
                       "epochs or 1000 steps",
                       key);
    return ERR_OK;
}

/* The length of [every] in updates, at least one. */
static double every_steps(const opt_every_t *every, const optim_span_t *span)
{
    double steps = every->value;

    if (every->unit == OPT_EPOCHS)
        steps = round(steps * (double)span->epoch_steps);
    return fmax(steps, 1);
}

static err_code_t decay_check(const void *options, err_t *err)
{
    const decay_options_t *decay = options;

    return every_check(&decay->every, "every", err);
}

static double decay_lr(const void *options, const optim_span_t *span, double lr,
                       int64_t step)
{
    const decay_options_t *decay = options;

    return lr * pow(decay->gamma,
                    floor((double)step / every_steps(&decay->every, span)));
}

const optim_schedule_kind_t optim_schedule_step = {
    .row = {.name = "step",
            .help = "The rate is multiplied by gamma at regular intervals, "
                    "counted from the start of the run",
            .options = step_rows},
    .warmup = OPTIM_WARMUP_OVER,
    .validate = decay_check,
    .lr = decay_lr,
};

const optim_schedule_kind_t optim_schedule_exponential = {
    .row = {.name = "exponential",
            .help = "The rate is multiplied by gamma after each interval, by "
                    "default after each epoch",
            .options = exponential_rows},
    .warmup = OPTIM_WARMUP_OVER,
    .validate = decay_check,
    .lr = decay_lr,
};

/* ---- multistep ----------------------------------------------------------- */

typedef struct multistep_options {
    optim_warmup_t warmup;
    opt_ints_t milestones;
    int unit; /* [unit] of [units] */
    double gamma;
} multistep_options_t;

FITS(multistep_options_t);

static const char *const units[] = {"epochs", "steps", NULL};

static const opt_row_t multistep_rows[] = {
    WARMUP_OVER,
    {.name = "milestones",
     .type = OPT_INTS,
     .offset = offsetof(multistep_options_t, milestones),
     .fallback = NULL,
     .min = 0,
     .max = 1e15,
     .help = "List of when the rate is multiplied, such as [30, 60, 80]"},
    {.name = "unit",
     .type = OPT_CHOICE,
     .offset = offsetof(multistep_options_t, unit),
     .fallback = "epochs",
     .choices = units,
     .help = "Unit of the milestones, counted from the start of the run"},
    OPTIM_REAL(multistep_options_t, gamma, "0.1", 0, 1e6,
               "Factor by which the rate is multiplied at each change"),
    {.name = NULL},
};

static double multistep_lr(const void *options, const optim_span_t *span,
                           double lr, int64_t step)
{
    const multistep_options_t *multistep = options;
    int64_t unit = multistep->unit == 0 ? span->epoch_steps : 1;
    int passed = 0;

    for (int i = 0; i < multistep->milestones.count; i++)
        passed += step / unit >= multistep->milestones.items[i];
    return lr * pow(multistep->gamma, passed);
}

const optim_schedule_kind_t optim_schedule_multistep = {
    .row = {.name = "multistep",
            .help = "The rate is multiplied by gamma at each milestone",
            .options = multistep_rows},
    .warmup = OPTIM_WARMUP_OVER,
    .lr = multistep_lr,
};

/* ---- cosine -------------------------------------------------------------- */

typedef struct cosine_options {
    optim_warmup_t warmup;
    double min_lr;
} cosine_options_t;

FITS(cosine_options_t);

static const opt_row_t cosine_rows[] = {
    WARMUP_BEFORE,
    OPTIM_REAL(cosine_options_t, min_lr, "0", 0, 1e6,
               "Rate at the end of the run"),
    {.name = NULL},
};

/* Value between [from] and [to] along half a cosine; [done] goes from 0 to
 * 1. */
static double anneal(double from, double to, double done)
{
    return to + (from - to) * 0.5 * (1 + cos(PI * done));
}

static double cosine_lr(const void *options, const optim_span_t *span,
                        double lr, int64_t step)
{
    const cosine_options_t *cosine = options;

    return anneal(lr, cosine->min_lr, share(span, step));
}

const optim_schedule_kind_t optim_schedule_cosine = {
    .row = {.name = "cosine",
            .help = "Linear warm-up; then the rate falls along half a cosine "
                    "over the rest of the run",
            .options = cosine_rows},
    .lr = cosine_lr,
};

/* ---- restarts ------------------------------------------------------------ */

typedef struct restarts_options {
    optim_warmup_t warmup;
    opt_every_t period;
    int64_t mult;
    double min_lr;
} restarts_options_t;

FITS(restarts_options_t);

static const opt_row_t restarts_rows[] = {
    WARMUP_ROW("Number of updates of linear warm-up to the optimizer's rate, "
               "before the first period begins"),
    {.name = "period",
     .type = OPT_EVERY,
     .offset = offsetof(restarts_options_t, period),
     .fallback = NULL,
     .help = "Length of the first period, such as 10 epochs; PyTorch's T_0"},
    {.name = "mult",
     .type = OPT_INT,
     .offset = offsetof(restarts_options_t, mult),
     .fallback = "1",
     .min = 1,
     .max = 1e6,
     .help = "Factor by which each period is longer than the one before; "
             "PyTorch's T_mult"},
    OPTIM_REAL(restarts_options_t, min_lr, "0", 0, 1e6,
               "Rate at the end of each period"),
    {.name = NULL},
};

static err_code_t restarts_check(const void *options, err_t *err)
{
    const restarts_options_t *restarts = options;

    return every_check(&restarts->period, "period", err);
}

/* Computed in float64, which represents these lengths exactly. */
static double restarts_lr(const void *options, const optim_span_t *span,
                          double lr, int64_t step)
{
    const restarts_options_t *restarts = options;
    double period = floor(every_steps(&restarts->period, span));
    double at = (double)step;

    if (restarts->mult == 1)
        at = fmod(at, period);
    while (at >= period) {
        at -= period;
        period *= (double)restarts->mult;
    }
    return anneal(lr, restarts->min_lr, at / period);
}

const optim_schedule_kind_t optim_schedule_restarts = {
    .row = {.name = "restarts",
            .help = "In each period the rate falls from the optimizer's rate "
                    "along half a cosine (Loshchilov and Hutter, 2017)",
            .options = restarts_rows},
    .validate = restarts_check,
    .lr = restarts_lr,
};

/* ---- one_cycle ----------------------------------------------------------- */

typedef struct one_cycle_options {
    optim_warmup_t warmup;
    double pct_start, div_factor, final_div_factor;
} one_cycle_options_t;

FITS(one_cycle_options_t);

static const opt_row_t one_cycle_rows[] = {
    WARMUP_ROW("Number of updates in which the rate rises; 0: pct_start "
               "determines it"),
    OPTIM_REAL(one_cycle_options_t, pct_start, "0.3", 0, 1,
               "Fraction of the run in which the rate rises"),
    OPTIM_REAL(one_cycle_options_t, div_factor, "25", 1e-6, 1e12,
               "The first rate is the optimizer's rate divided by this"),
    OPTIM_REAL(one_cycle_options_t, final_div_factor, "1e4", 1e-6, 1e12,
               "The last rate is the first rate divided by this"),
    {.name = NULL},
};

/* As torch.optim.lr_scheduler.OneCycleLR with its default options: the peak is
 * reached at update rise * steps - 1, the end at the last update. */
static double one_cycle_lr(const void *options, const optim_span_t *span,
                           double lr, int64_t step)
{
    const one_cycle_options_t *cycle = options;
    const double begin = lr / cycle->div_factor;
    const double end = begin / cycle->final_div_factor;
    const double last = (double)(span->steps - 1);
    const double now = (double)step;
    double top = cycle->pct_start * (double)span->steps - 1;

    if (cycle->warmup.warmup_steps > 0)
        top = (double)(cycle->warmup.warmup_steps - 1);
    if (now < top)
        return anneal(begin, lr, now / top);
    if (now < last)
        return anneal(lr, end, (now - top) / (last - top));
    return now == top ? lr : end;
}

const optim_schedule_kind_t optim_schedule_one_cycle = {
    .row = {.name = "one_cycle",
            .help =
                "The rate rises to the optimizer's rate, then falls to nearly "
                "0, each along half a cosine; the momentum is constant",
            .options = one_cycle_rows},
    .warmup = OPTIM_WARMUP_OWN,
    .lr = one_cycle_lr,
};

/* ---- polynomial ---------------------------------------------------------- */

typedef struct polynomial_options {
    optim_warmup_t warmup;
    double power, min_lr;
} polynomial_options_t;

FITS(polynomial_options_t);

static const opt_row_t polynomial_rows[] = {
    WARMUP_BEFORE,
    OPTIM_REAL(polynomial_options_t, power, "1", 0, 100,
               "Exponent of the remaining fraction of the run; 1: linear"),
    OPTIM_REAL(polynomial_options_t, min_lr, "0", 0, 1e6,
               "Rate at the end of the run"),
    {.name = NULL},
};

static double polynomial_lr(const void *options, const optim_span_t *span,
                            double lr, int64_t step)
{
    const polynomial_options_t *polynomial = options;

    return polynomial->min_lr +
           (lr - polynomial->min_lr) *
               pow(1 - share(span, step), polynomial->power);
}

const optim_schedule_kind_t optim_schedule_polynomial = {
    .row = {.name = "polynomial",
            .help = "The rate falls to min_lr as a power of the remaining "
                    "fraction of the run",
            .options = polynomial_rows},
    .lr = polynomial_lr,
};

/* ---- inverse_sqrt -------------------------------------------------------- */

static const opt_row_t inverse_sqrt_rows[] = {
    WARMUP_ROW("Number of updates of linear warm-up to the optimizer's rate; "
               "then the rate falls"),
    {.name = NULL},
};

static double inverse_sqrt_lr(const void *options, const optim_span_t *span,
                              double lr, int64_t step)
{
    const optim_warmup_t *warmup = options;
    const double top = fmax(1, (double)warmup->warmup_steps);
    const double update = (double)step + 1;

    (void)span;
    return lr * (update < top ? update / top : sqrt(top / update));
}

const optim_schedule_kind_t optim_schedule_inverse_sqrt = {
    .row =
        {.name = "inverse_sqrt",
         .help =
             "Linear warm-up; then the rate is proportional to one over the "
             "square root of the number of the update (Vaswani et al., 2017)",
         .options = inverse_sqrt_rows},
    .warmup = OPTIM_WARMUP_OWN,
    .lr = inverse_sqrt_lr,
};
