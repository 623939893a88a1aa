/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cross_entropy of classes or probabilities; op/ref/cross_entropy.c has the
 * formulas. Forward reads x once and keeps the logarithm of the sum of
 * exponentials of each row (workspace, float [rows]), so that backward is one
 * pass, too, and may write dx over x. Where the classes of a row are adjacent,
 * a block treats a row, or a warp if there are few classes; otherwise a thread
 * does, as neighbouring rows are adjacent then. Scratch has two partial sums
 * for each block: of the loss, and of the right answers.
 */
#include "op/cuda/device/rows.cuh"
#include "op/cuda/device/total.cuh"

namespace
{

struct entropy_work {
    int64_t rows, classes, inner;
    index_divisor_t by_inner, each; /* each: rows of a sample */
    float hit, spread, sum;         /* op_smooth_t */
    const float *class_weights;     /* NULL: all 1 */
    bool ignore;
    int64_t ignored;
    int loss;
    const op_step_t *step;
    const float *x, *probabilities, *sample_weights;
    const int64_t *target; /* NULL: the targets are probabilities */
    float *dx, *logs;      /* logs: of the sums of exponentials */
    double *partials;
};

/* What one pass over a row finds. The sum of exponentials is that of x - top;
 * a and b are sums over the classes, see entropy_loss. */
struct entropy_row {
    float top, sum;
    int64_t best;
    float most; /* the largest probability of the target */
    int64_t most_at;
    double a, b;
};

} // namespace

static __device__ float class_weight(const entropy_work &work, int64_t k)
{
    return work.class_weights == NULL ? 1 : work.class_weights[k];
}

static __device__ entropy_row row_empty(void)
{
    return entropy_row{-INFINITY, 0, INT64_MAX, -INFINITY, INT64_MAX, 0, 0};
}

/* exp(value - top); 0 for the -infinity of a row without elements. */
static __device__ float row_scaled(float value, float top)
{
    return value == -INFINITY ? 0 : expf(value - top);
}

/* The first of equal numbers counts as the largest. */
static __device__ void row_best(float value, int64_t k, float *best,
                                int64_t *best_at)
{
    if (value > *best || (value == *best && k < *best_at)) {
        *best = value;
        *best_at = k;
    }
}

/* Take class [k] into the row. */
static __device__ void row_add(const entropy_work &work, int64_t at, int64_t k,
                               entropy_row *row)
{
    const float x = work.x[at], weight = class_weight(work, k);
    const float old = row->top;

    row_best(x, k, &row->top, &row->best);
    if (x > old)
        row->sum = row->sum * row_scaled(old, x) + 1;
    else
        row->sum += x == -INFINITY ? 0 : expf(x - old);
    if (work.target == NULL) {
        const float t = work.probabilities[at];
        const float share = (work.hit * t + work.spread) * weight;

        row_best(t, k, &row->most, &row->most_at);
        row->a += share;
        row->b += (double)share * x;
    } else if (work.spread > 0) {
        row->b += (double)(work.spread * weight) * x;
    }
}

static __device__ void row_merge(const entropy_row &from, entropy_row *row)
{
    const float old = row->top;

    row_best(from.top, from.best, &row->top, &row->best);
    row->sum = row->sum * row_scaled(old, row->top) +
               from.sum * row_scaled(from.top, row->top);
    row_best(from.most, from.most_at, &row->most, &row->most_at);
    row->a += from.a;
    row->b += from.b;
}

/* The row of the whole warp, in all of its threads. */
static __device__ void row_warp(entropy_row *row)
{
    for (int bit = 16; bit > 0; bit >>= 1) {
        entropy_row from;

        from.top = __shfl_xor_sync(0xffffffffu, row->top, bit);
        from.sum = __shfl_xor_sync(0xffffffffu, row->sum, bit);
        from.best = __shfl_xor_sync(0xffffffffu, row->best, bit);
        from.most = __shfl_xor_sync(0xffffffffu, row->most, bit);
        from.most_at = __shfl_xor_sync(0xffffffffu, row->most_at, bit);
        from.a = __shfl_xor_sync(0xffffffffu, row->a, bit);
        from.b = __shfl_xor_sync(0xffffffffu, row->b, bit);
        row_merge(from, row);
    }
}

/* The row of the whole block, in all of its threads. */
static __device__ void row_block(entropy_row *row)
{
    __shared__ entropy_row parts[ROWS_WARPS];

    row_warp(row);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = *row;
    __syncthreads();
    *row = parts[0];
    for (int w = 1; w < ROWS_WARPS; w++)
        row_merge(parts[w], row);
    __syncthreads();
}

/* The loss of a row, and whether its largest logit is the target. A wrong
 * target was refused on the host. */
static __device__ double entropy_loss(const entropy_work &work, int64_t r,
                                      int64_t first, const entropy_row &row,
                                      bool *right)
{
    const double log_sum = (double)logf(row.sum) + row.top;
    const float weight = work.sample_weights == NULL
                             ? 1
                             : work.sample_weights[index_div(r, work.each)];
    int64_t t;

    if (work.target == NULL) {
        *right = row.best == row.most_at;
        return weight * (row.a * log_sum - row.b);
    }
    t = work.target[r];
    *right = row.best == t;
    if (work.ignore && t == work.ignored)
        return 0;
    if (t < 0 || t >= work.classes)
        return NAN;
    return weight * ((double)(work.hit * class_weight(work, t)) *
                         (log_sum - work.x[first + t * work.inner]) +
                     (work.spread > 0
                          ? (double)(work.spread * work.sum) * log_sum - row.b
                          : 0));
}

/* Index in x of the first class of row [r]. */
static __device__ int64_t entropy_first(const entropy_work &work, int64_t r)
{
    const int64_t inner = index_split(&r, work.by_inner);

    return r * work.classes * work.inner + inner;
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS, EACH_FEW)
    entropy_value(entropy_work work)
{
    const rows_place<who> place;
    double loss = 0, correct = 0;

    for (int64_t r = place.row; r < work.rows; r += place.step) {
        const int64_t first = entropy_first(work, r);
        entropy_row row = row_empty();
        double value;
        bool right;

        for (int64_t k = place.lane; k < work.classes; k += place.lanes)
            row_add(work, first + k * work.inner, k, &row);
        if constexpr (who == ROWS_WARP)
            row_warp(&row);
        if constexpr (who == ROWS_BLOCK)
            row_block(&row);
        value = entropy_loss(work, r, first, row, &right);
        if (place.lane == 0) {
            loss += value;
            correct += right;
            if (work.logs != NULL)
                work.logs[r] = logf(row.sum) + row.top;
        }
    }
    total_put(loss, work.partials);
    total_put(correct, work.partials + gridDim.x);
}

/* The part of a row's gradient that all of its classes share. */
struct entropy_slope {
    float scale, share, hit, log_sum;
    int64_t target; /* -1: none */
};

static __device__ entropy_slope slope_of(const entropy_work &work, int64_t r,
                                         double scale)
{
    entropy_slope slope = {(float)scale, 0, 0, work.logs[r], -1};

    if (work.sample_weights != NULL)
        slope.scale *= work.sample_weights[index_div(r, work.each)];
    if (work.target == NULL)
        return slope;
    slope.target = work.target[r];
    if (work.ignore && slope.target == work.ignored)
        slope.scale = 0;
    else if (slope.target >= 0 && slope.target < work.classes)
        slope.hit = work.hit * class_weight(work, slope.target);
    slope.share = slope.hit + work.spread * work.sum;
    return slope;
}

/* For targets that are probabilities: the factor of -log p of a class, from its
 * probability in the target and its weight. */
static __device__ float soft_share(const entropy_work &work, float target,
                                   float weight)
{
    return (work.hit * target + work.spread) * weight;
}

/* The gradients of the classes k .. k + N - 1, which begin at [at]. */
template <int N>
static __device__ __forceinline__ void
entropy_gradient_at(const entropy_work &work, const entropy_slope &slope,
                    int64_t at, int64_t k)
{
    float v[N], target[N] = {}, weight[N];

    pack_load(work.x + at, v);
    for (int j = 0; j < N; j++)
        weight[j] = 1;
    if (work.class_weights != NULL)
        pack_load(work.class_weights + k, weight);
    if (work.target == NULL)
        pack_load(work.probabilities + at, target);
    for (int j = 0; j < N; j++) {
        const float p = slope.share * expf(v[j] - slope.log_sum);

        if (work.target == NULL)
            v[j] = p - soft_share(work, target[j], weight[j]);
        else
            v[j] = p - work.spread * weight[j] -
                   (k + j == slope.target ? slope.hit : 0);
        v[j] = slope.scale == 0 ? 0 : slope.scale * v[j];
    }
    pack_store(work.dx + at, v);
}

/* The sum of the shares of a row with probabilities. */
template <rows_who_t who>
static __device__ float soft_total(const entropy_work &work,
                                   const rows_place<who> &place, int64_t first)
{
    double total = 0;

    for (int64_t k = place.lane; k < work.classes; k += place.lanes)
        total += soft_share(work, work.probabilities[first + k * work.inner],
                            class_weight(work, k));
    return (float)rows_sum<who>(total);
}

template <rows_who_t who, int N>
static __global__ void __launch_bounds__(EACH_THREADS, EACH_FEW)
    entropy_gradient(entropy_work work)
{
    const rows_place<who> place;
    const double scale = work.step->scales[work.loss];

    for (int64_t r = place.row; r < work.rows; r += place.step) {
        const int64_t first = entropy_first(work, r);
        entropy_slope slope = slope_of(work, r, scale);

        if (work.target == NULL)
            slope.share = soft_total<who>(work, place, first);
        for (int64_t k = place.lane * N; k < work.classes; k += place.lanes * N)
            entropy_gradient_at<N>(work, slope, first + k * work.inner, k);
    }
}

/* ---- the op -------------------------------------------------------------- */

static rows_who_t who_of(const op_t *op)
{
    const op_classes_t at = op_classes_of(&op->config);

    return rows_for(at.classes, at.inner);
}

static unsigned entropy_blocks(const op_t *op)
{
    return total_blocks(op_classes_of(&op->config).rows, rows_each(who_of(op)));
}

static err_code_t entropy_open(op_t *op, err_t *err)
{
    const op_classes_t at = op_classes_of(&op->config);

    op->over_x = true;
    op->scratch_bytes = 2 * entropy_blocks(op) * sizeof(double);
    if (op->config.training)
        op->workspace_bytes = (size_t)at.rows * sizeof(float);
    return cuda_constant(op, op->config.loss.weights,
                         (size_t)at.classes * sizeof(float),
                         "weights of classes", &op->state, err);
}

static void entropy_close(op_t *op)
{
    dev_free(op->dev, op->state);
}

static entropy_work work_of(const op_t *op, const op_args_t *args)
{
    const op_config_t *config = &op->config;
    const op_classes_t at = op_classes_of(config);
    const op_smooth_t smooth = op_smooth_of(config);
    entropy_work work = {};

    work.rows = at.rows;
    work.classes = at.classes;
    work.inner = at.inner;
    work.by_inner = index_divisor_of(at.inner);
    work.each = index_divisor_of(at.rows / config->in.dims[0]);
    work.hit = (float)smooth.hit;
    work.spread = (float)smooth.spread;
    work.sum = (float)smooth.sum;
    work.class_weights = (const float *)op->state;
    work.loss = args->loss;
    work.step = args->step;
    work.x = (const float *)args->x;
    work.sample_weights = args->sample_weights;
    if (config->kind == OP_CROSS_ENTROPY) {
        work.target = (const int64_t *)args->target;
        work.ignore = config->loss.ignore;
        work.ignored = config->loss.ignored;
    } else {
        work.probabilities = (const float *)args->target;
    }
    work.dx = (float *)args->dx;
    work.logs = config->training ? (float *)args->workspace : NULL;
    work.partials = (double *)args->scratch;
    return work;
}

static err_code_t entropy_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const entropy_work work = work_of(op, args);
    const unsigned blocks = entropy_blocks(op);
    const cudaStream_t stream = cuda_stream(args);

    ROWS_LAUNCH(who_of(op), entropy_value, blocks, stream, work);
    total_start(work.partials, blocks, args->loss_sum, args->correct, stream);
    return cuda_started(op, err);
}

/* Can backward access all rows 16 bytes at a time? */
static bool is_wide(const entropy_work &work)
{
    return rows_packed(work.classes, work.inner) &&
           pack_aligned(work.x, work.dx, work.probabilities,
                        work.class_weights);
}

static err_code_t entropy_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const entropy_work work = work_of(op, args);
    const rows_who_t who = who_of(op);

    if (!op->config.need_dx)
        return ERR_OK;
    ROWS_LAUNCH_PACKED(who, is_wide(work), entropy_gradient,
                       rows_blocks(who, work.rows), cuda_stream(args), work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_cross_entropy_kernel = {
    entropy_open, entropy_close, entropy_forward, entropy_backward};
