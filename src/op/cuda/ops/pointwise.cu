/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Losses that are sums of f(x, t) over the elements; op/ref/pointwise.c and
 * mse.c have the formulas. Elements are float32, sums float64. Scratch has a
 * partial sum for each block. bce keeps the weights of its classes on the
 * device.
 */
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/total.cuh"

namespace
{

struct pointwise_work {
    op_kind_t kind;
    int64_t count;
    index_divisor_t sample; /* elements of a sample */
    float a;
    const float *class_weights; /* NULL: all elements have the constant a */
    index_divisor_t classes, inner;
    int loss;
    const op_step_t *step;
    const float *x, *t, *sample_weights;
    float *dx;
    double *partials;
};

} // namespace

static __device__ float pointwise_sign(float d)
{
    return d > 0 ? 1 : d < 0 ? -1 : d;
}

/* [p] is a probability, [log_p] its logarithm. */
static __device__ double kl_value(float x, float p, float log_p)
{
    return p == 0 ? 0 * x : (double)p * (log_p - x);
}

static __device__ double pointwise_value(op_kind_t kind, float x, float t,
                                         float a)
{
    const float d = x - t;

    switch ((int)kind) {
    case OP_MSE:
        return (double)d * d;
    case OP_MAE:
        return fabsf(d);
    case OP_HUBER:
        return fabsf(d) <= a ? (double)d * d / 2
                             : (double)a * (fabsf(d) - a / 2);
    case OP_BCE: /* in a form that does not overflow */
        return (double)(1 - t) * x +
               (1 + (a - 1) * t) *
                   ((double)log1pf(expf(-fabsf(x))) + (x < 0 ? -x : 0 * x));
    default:
        return a == 0 ? kl_value(x, t, logf(t)) : kl_value(x, expf(t), t);
    }
}

static __device__ float pointwise_slope(op_kind_t kind, float x, float t,
                                        float a)
{
    const float d = x - t;

    switch ((int)kind) {
    case OP_MSE:
        return 2 * d;
    case OP_MAE:
        return pointwise_sign(d);
    case OP_HUBER:
        return fabsf(d) <= a ? d : a * pointwise_sign(d);
    case OP_BCE:
        return (1 + (a - 1) * t) / (1 + expf(-x)) - a * t;
    default:
        return a == 0 ? -t : -expf(t);
    }
}

static __device__ float pointwise_alpha(const pointwise_work &work, int64_t i)
{
    if (work.class_weights == NULL)
        return work.a;
    i = index_div(i, work.inner);
    return work.class_weights[index_split(&i, work.classes)];
}

static __device__ float pointwise_weight(const pointwise_work &work, int64_t i)
{
    return work.sample_weights == NULL
               ? 1
               : work.sample_weights[index_div(i, work.sample)];
}

static __global__ void __launch_bounds__(EACH_THREADS)
    pointwise_sum(pointwise_work work)
{
    double sum = 0;

    for (int64_t i = each_first(); i < work.count; i += each_step())
        sum += pointwise_weight(work, i) *
               pointwise_value(work.kind, work.x[i], work.t[i],
                               pointwise_alpha(work, i));
    total_put(sum, work.partials);
}

namespace
{

struct pointwise_gradient {
    pointwise_work work;

    template <int N> __device__ void at(int64_t i) const
    {
        const float scale = (float)work.step->scales[work.loss];
        float x[N], t[N];

        pack_load(work.x + i, x);
        pack_load(work.t + i, t);
        for (int k = 0; k < N; k++)
            x[k] = scale == 0
                       ? 0
                       : pointwise_weight(work, i + k) * scale *
                             pointwise_slope(work.kind, x[k], t[k],
                                             pointwise_alpha(work, i + k));
        pack_store(work.dx + i, x);
    }
};

} // namespace

/* ---- the op -------------------------------------------------------------- */

static unsigned pointwise_blocks(const op_t *op)
{
    return total_blocks(op_desc_elems(&op->config.in), 4 * EACH_THREADS);
}

static err_code_t pointwise_open(op_t *op, err_t *err)
{
    const op_loss_t *loss = &op->config.loss;

    op->over_x = true;
    op->scratch_bytes = pointwise_blocks(op) * sizeof(double);
    if (op->config.kind != OP_BCE || loss->weights == NULL)
        return ERR_OK;
    return cuda_constant(op, loss->weights,
                         (size_t)op_classes_of(&op->config).classes *
                             sizeof(float),
                         "weights of classes", &op->state, err);
}

static void pointwise_close(op_t *op)
{
    dev_free(op->dev, op->state);
}

static pointwise_work work_of(const op_t *op, const op_args_t *args)
{
    pointwise_work work = {};

    work.kind = op->config.kind;
    work.count = op_desc_elems(&op->config.in);
    work.sample = index_divisor_of(op_desc_sample(&op->config.in));
    work.class_weights = (const float *)op->state;
    if (work.class_weights != NULL) {
        work.classes = index_divisor_of(op_classes_of(&op->config).classes);
        work.inner = index_divisor_of(op_classes_of(&op->config).inner);
    } else {
        work.a = (float)op_alpha(&op->config, 0);
    }
    work.loss = args->loss;
    work.step = args->step;
    work.x = (const float *)args->x;
    work.t = (const float *)args->target;
    work.sample_weights = args->sample_weights;
    work.dx = (float *)args->dx;
    work.partials = (double *)args->scratch;
    return work;
}

static err_code_t pointwise_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const pointwise_work work = work_of(op, args);
    const unsigned blocks = pointwise_blocks(op);

    LAUNCH(pointwise_sum, blocks, EACH_THREADS, 0, cuda_stream(args), work);
    total_start(work.partials, blocks, args->loss_sum, NULL, cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t pointwise_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const pointwise_work work = work_of(op, args);

    if (!op->config.need_dx)
        return ERR_OK;
    each_start<4>(pointwise_gradient{work}, work.count,
                  pack_aligned(work.x, work.t, work.dx), cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_pointwise_kernel = {
    pointwise_open, pointwise_close, pointwise_forward, pointwise_backward};
