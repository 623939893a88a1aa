/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mae, huber, bce, kl (ref/pointwise.c has the formulas). Terms are computed
 * in float, in blocks, and summed in double. */
#include "op/cpu/cpu.h"
#include "op/cpu/ops/loss.h"
#include "op/op_desc.h"
#include "op/op_loss.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum elements per thread, and elements of a block. */
#define CPU_POINTWISE_GRAIN 8192
#define CPU_TERMS 256

/* Define a function: to[i] = factor * [value] for n elements, where [value] is
 * an expression of x, t and alpha. */
#define CPU_TERMS_LOOP(name, value)                                     \
    SIMD_CLONES                                                         \
    static void name(const float *from, const float *target, float *to, \
                     int64_t n, float alpha, float factor)              \
    {                                                                   \
        (void)alpha;                                                    \
        SIMD_INDEPENDENT                                                \
        for (int64_t i = 0; i < n; i++) {                               \
            float x = from[i], t = target[i];                           \
                                                                        \
            (void)x;                                                    \
            to[i] = factor * (value);                                   \
        }                                                               \
    }

typedef void cpu_terms_t(const float *from, const float *target, float *to,
                         int64_t n, float alpha, float factor);

/* Like CPU_TERMS_LOOP, with an alpha for each element. */
#define CPU_TERMS_LOOP_EACH(name, value)                                \
    SIMD_CLONES                                                         \
    static void name(const float *from, const float *target, float *to, \
                     int64_t n, const float *alphas, float factor)      \
    {                                                                   \
        SIMD_INDEPENDENT                                                \
        for (int64_t i = 0; i < n; i++) {                               \
            float x = from[i], t = target[i], alpha = alphas[i];        \
                                                                        \
            to[i] = factor * (value);                                   \
        }                                                               \
    }

typedef void cpu_terms_each_t(const float *from, const float *target, float *to,
                              int64_t n, const float *alphas, float factor);

SIMD_INLINE float cpu_sign(float d)
{
    return d > 0 ? 1.0f : d < 0 ? -1.0f : d;
}

SIMD_INLINE float huber_value(float d, float a)
{
    float far = a * (fabsf(d) - 0.5f * a);

    return fabsf(d) <= a ? 0.5f * d * d : far;
}

SIMD_INLINE float bce_value(float x, float t, float a)
{
    float below = x >= 0 ? 0 : -x;

    return (1 - t) * x +
           (1 + (a - 1) * t) *
               (below + simd_math_log1p(simd_math_exp(-fabsf(x))));
}

CPU_TERMS_LOOP(mae_value, fabsf(x - t))
CPU_TERMS_LOOP(mae_slope, cpu_sign(x - t))
CPU_TERMS_LOOP(huber_values, huber_value(x - t, alpha))
CPU_TERMS_LOOP(huber_slope,
               fabsf(x - t) <= alpha ? x - t : alpha * cpu_sign(x - t))
#define BCE_SLOPE ((1 + (alpha - 1) * t) * simd_math_sigmoid(x) - alpha * t)
CPU_TERMS_LOOP(bce_values, bce_value(x, t, alpha))
CPU_TERMS_LOOP(bce_slope, BCE_SLOPE)
CPU_TERMS_LOOP_EACH(bce_values_each, bce_value(x, t, alpha))
CPU_TERMS_LOOP_EACH(bce_slope_each, BCE_SLOPE)
CPU_TERMS_LOOP(kl_value, t == 0 ? 0 * x : t * (logf(t) - x))
CPU_TERMS_LOOP(kl_slope, -t)
/* t is the logarithm of a probability, -infinity for 0. Below -87 the
 * probability counts as 0. NaN stays NaN. */
CPU_TERMS_LOOP(kl_log_value, t < -87 ? 0 * x : simd_math_exp(t) * (t - x))
CPU_TERMS_LOOP(kl_log_slope, t < -87 ? 0 : -simd_math_exp(t))

typedef struct cpu_pointwise_kind {
    cpu_terms_t *value, *slope;
    cpu_terms_each_t *value_each, *slope_each;
} cpu_pointwise_kind_t;

static const cpu_pointwise_kind_t kinds[OP_KINDS] = {
    [OP_MAE] = {.value = mae_value, .slope = mae_slope},
    [OP_HUBER] = {.value = huber_values, .slope = huber_slope},
    [OP_BCE] = {.value = bce_values,
                .slope = bce_slope,
                .value_each = bce_values_each,
                .slope_each = bce_slope_each},
    [OP_KL] = {.value = kl_value, .slope = kl_slope},
};

static const cpu_pointwise_kind_t kl_log = {.value = kl_log_value,
                                            .slope = kl_log_slope};

static const cpu_pointwise_kind_t *kind_of(const op_config_t *config)
{
    return config->kind == OP_KL && config->alpha > 0 ? &kl_log
                                                      : &kinds[config->kind];
}

typedef struct cpu_pointwise_work {
    cpu_terms_t *terms;
    cpu_terms_each_t *each;
    const float *weights; /* alpha of each class, [at.classes]; NULL: one alpha
                             for all */
    op_classes_t at;
    const float *x, *target;
    int64_t elems; /* of one sample */
    double *losses;
    float *dx;
    float alpha, factor;
} cpu_pointwise_work_t;

/* Compute the terms of elements [at, at + count) of the batch. */
static void pointwise_terms(const cpu_pointwise_work_t *work, int64_t at,
                            float *to, int64_t count, float factor)
{
    const int64_t classes = work->at.classes, inner = work->at.inner;
    int64_t n;

    for (; work->weights != NULL && count > 0; at += n, to += n, count -= n) {
        const int64_t k = at / inner % classes;
        const int64_t left = inner == 1 ? classes - k : inner - at % inner;
        const float *x = work->x + at, *target = work->target + at;

        n = left < count ? left : count;
        if (inner == 1)
            work->each(x, target, to, n, work->weights + k, factor);
        else
            work->terms(x, target, to, n, work->weights[k], factor);
    }
    if (count > 0)
        work->terms(work->x + at, work->target + at, to, count, work->alpha,
                    factor);
}

/* Sum in several lanes, so that additions need not wait for each other. */
SIMD_CLONES
static double pointwise_sum(const float *terms, int64_t count)
{
    double lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + SIMD_LANES <= count; i += SIMD_LANES)
        for (int k = 0; k < SIMD_LANES; k++)
            lanes[k] += (double)terms[i + k];
    for (; i < count; i++)
        sum += (double)terms[i];
    for (int k = 0; k < SIMD_LANES; k++)
        sum += lanes[k];
    return sum;
}

static void pointwise_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_pointwise_work_t *work = context;

    for (int64_t n = first; n < last; n++) {
        double sum = 0;

        for (int64_t i = 0; i < work->elems; i += CPU_TERMS) {
            int64_t at = n * work->elems + i, left = work->elems - i;
            int64_t count = left < CPU_TERMS ? left : CPU_TERMS;
            float terms[CPU_TERMS];

            pointwise_terms(work, at, terms, count, 1);
            sum += pointwise_sum(terms, count);
        }
        work->losses[n] = sum;
    }
}

static void pointwise_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_pointwise_work_t *work = context;
    const int64_t at = first * work->elems;

    pointwise_terms(work, at, work->dx + at, (last - first) * work->elems,
                    work->factor);
}

/* Convert x to plain layout and divide the samples among threads. */
static err_code_t pointwise_run(op_t *op, const op_args_t *args,
                                cpu_pointwise_work_t *work,
                                simd_team_body_t *body, err_t *err)
{
    cpu_loss_t *loss = op->state;
    const void *x;
    err_code_t rc = cpu_reorder_read(&loss->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    work->x = x;
    work->target = args->target;
    work->elems = op_desc_sample(&op->config.in);
    if (op->config.kind == OP_BCE && op->config.loss.weights != NULL) {
        work->weights = op->config.loss.weights;
        work->at = op_classes_of(&op->config);
    } else {
        work->alpha = (float)op_alpha(&op->config, 0);
    }
    simd_team_run(op->config.threads, op->config.in.dims[0],
                  1 + CPU_POINTWISE_GRAIN / work->elems, body, work);
    return ERR_OK;
}

static err_code_t cpu_pointwise_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    const cpu_pointwise_kind_t *kind = kind_of(&op->config);
    cpu_pointwise_work_t work = {.terms = kind->value,
                                 .each = kind->value_each,
                                 .losses = cpu_loss_items(op, args)};
    err_code_t rc = pointwise_run(op, args, &work, pointwise_body_forward, err);

    if (rc == ERR_OK)
        *args->loss_sum = cpu_loss_sum(op, args);
    return rc;
}

static err_code_t cpu_pointwise_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_loss_t *loss = op->state;
    cpu_reorder_t *reorder = &loss->plain.dx;
    const cpu_pointwise_kind_t *kind = kind_of(&op->config);
    cpu_pointwise_work_t work = {.terms = kind->slope,
                                 .each = kind->slope_each,
                                 .dx =
                                     cpu_reorder_place(reorder, args, args->dx),
                                 .factor = (float)op_loss_scale(args)};
    err_code_t rc;

    if (!op->config.need_dx || op_loss_left_out(op, args))
        return ERR_OK;
    rc = pointwise_run(op, args, &work, pointwise_body_backward, err);
    if (rc == ERR_OK)
        rc = cpu_loss_flush(op, args, work.dx, err);
    return rc;
}

const op_kernel_t cpu_pointwise_kernel = {
    .open = cpu_loss_open,
    .close = cpu_loss_close,
    .forward = cpu_pointwise_forward,
    .backward = cpu_pointwise_backward,
};
