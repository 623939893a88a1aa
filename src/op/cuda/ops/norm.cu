/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * layernorm, rmsnorm, groupnorm, instancenorm; op/ref/norm.c has the formulas.
 * A row is normalised by a warp or a block, which reads it from memory once and
 * from a cache after that. y may be stored as bfloat16. The workspace keeps
 * mean and 1/sqrt(var + epsilon), float [rows,2]. The gradients of gamma and
 * beta are sums for each channel of a tensor [N, parameters, space].
 */
#include "op/cuda/device/channels.cuh"
#include "op/cuda/device/rows.cuh"

namespace
{

struct norm_work {
    op_rows_t rows;
    int64_t params; /* of a row */
    index_divisor_t by_groups, by_space, by_params;
    double epsilon;
    bool centred; /* the mean is subtracted: all but rmsnorm */
    bool add;     /* backward adds to dx */
    const float *x, *dy, *gamma, *beta;
    float *dx;
    float *kept;
    float *dgamma, *dbeta;
};

/* Parameters of the elements i .. i + N - 1 of row [row]; 1 or 0 if there are
 * none. */
template <int N>
static __device__ __forceinline__ void
params_at(const norm_work &work, const float *params, int64_t row, int64_t i,
          float none, float (&to)[N])
{
    const int64_t space = work.rows.space;
    const int64_t first = index_split(&row, work.by_groups) * work.params;

    for (int k = 0; k < N; k++)
        to[k] = none;
    if (params != NULL && space == 1)
        pack_load(params + first + i, to);
    for (int k = 0; k < N && params != NULL && space > 1; k++)
        to[k] = k > 0 && space % N == 0
                    ? to[0]
                    : params[first + index_div(i + k, work.by_space)];
}

/* Sums over n and s of dy and dy * xhat, for each parameter. */
struct param_sums {
    norm_work work;

    __device__ void term(int64_t c, int64_t n, int64_t at, double *sums) const
    {
        const op_rows_t &rows = work.rows;
        const int64_t row = n * rows.groups + index_div(c, work.by_params);
        const float mean = work.kept[2 * row], inverse = work.kept[2 * row + 1];
        const float dy = work.dy[at];

        sums[0] += dy;
        sums[1] += (double)dy * ((work.x[at] - mean) * inverse);
    }

    __device__ void finish(int64_t c, const double *sums) const
    {
        if (work.dgamma != NULL)
            work.dgamma[c] = (float)sums[1];
        if (work.dbeta != NULL)
            work.dbeta[c] = (float)sums[0];
    }
};

} // namespace

/* Mean and 1/sqrt(var + epsilon) of the row at [x], in all of its threads. */
template <rows_who_t who, int N>
static __device__ __forceinline__ float2 norm_moments(
    const norm_work &work, const rows_place<who> &place, const float *x)
{
    const int64_t length = work.rows.length;
    double sum = 0, square = 0;
    float v[N], mean = 0;

    for (int64_t i = place.lane * N; i < length && work.centred;
         i += place.lanes * N) {
        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            sum += v[k];
    }
    if (work.centred)
        mean = (float)(rows_sum<who>(sum) / length);
    for (int64_t i = place.lane * N; i < length; i += place.lanes * N) {
        float part = 0;

        pack_load(x + i, v);
        for (int k = 0; k < N; k++)
            part += (v[k] - mean) * (v[k] - mean);
        square += part;
    }
    square = rows_sum<who>(square) / length;
    return make_float2(mean, (float)(1 / sqrt(square + work.epsilon)));
}

template <rows_who_t who, int N, typename T>
static __global__ void __launch_bounds__(EACH_THREADS)
    norm_value(norm_work work, T *y)
{
    const rows_place<who> place;
    const int64_t length = work.rows.length;

    for (int64_t row = place.row; row < work.rows.rows; row += place.step) {
        const float *x = work.x + row * length;
        const float2 kept = norm_moments<who, N>(work, place, x);

        for (int64_t i = place.lane * N; i < length; i += place.lanes * N) {
            float v[N], gamma[N], beta[N];

            pack_load(x + i, v);
            params_at(work, work.gamma, row, i, 1, gamma);
            params_at(work, work.beta, row, i, 0, beta);
            for (int k = 0; k < N; k++)
                v[k] = (v[k] - kept.x) * kept.y * gamma[k] + beta[k];
            pack_store(y + row * length + i, v);
        }
        if (place.lane == 0 && work.kept != NULL) {
            work.kept[2 * row] = kept.x;
            work.kept[2 * row + 1] = kept.y;
        }
    }
}

/* g = gamma dy, and xhat, of the elements i .. i + N - 1 of a row. */
template <int N>
static __device__ __forceinline__ void
norm_factors(const norm_work &work, int64_t row, int64_t i, float (&g)[N],
             float (&hat)[N])
{
    const float mean = work.kept[2 * row], inverse = work.kept[2 * row + 1];
    const int64_t at = row * work.rows.length + i;
    float gamma[N];

    pack_load(work.dy + at, g);
    pack_load(work.x + at, hat);
    params_at(work, work.gamma, row, i, 1, gamma);
    for (int k = 0; k < N; k++) {
        g[k] *= gamma[k];
        hat[k] = (hat[k] - mean) * inverse;
    }
}

template <rows_who_t who, int N>
static __global__ void __launch_bounds__(EACH_THREADS)
    norm_gradient(norm_work work)
{
    const rows_place<who> place;
    const int64_t length = work.rows.length;

    for (int64_t row = place.row; row < work.rows.rows; row += place.step) {
        const float inverse = work.kept[2 * row + 1];
        float *dx = work.dx + row * length;
        double sum = 0, product = 0;
        float g[N], hat[N], old[N];

        for (int64_t i = place.lane * N; i < length; i += place.lanes * N) {
            norm_factors(work, row, i, g, hat);
            for (int k = 0; k < N; k++) {
                sum += g[k];
                product += g[k] * hat[k];
            }
        }
        sum = work.centred ? rows_sum<who>(sum) / length : 0;
        product = rows_sum<who>(product) / length;
        for (int64_t i = place.lane * N; i < length; i += place.lanes * N) {
            norm_factors(work, row, i, g, hat);
            if (work.add)
                pack_load(dx + i, old);
            for (int k = 0; k < N; k++) {
                g[k] = (g[k] - (float)sum - hat[k] * (float)product) * inverse;
                g[k] = work.add ? old[k] + g[k] : g[k];
            }
            pack_store(dx + i, g);
        }
    }
}

/* ---- the op -------------------------------------------------------------- */

static channels shape_of(const op_t *op)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    const int64_t params = rows.groups * (rows.length / rows.space);

    return channels_of(rows.rows / rows.groups, params, rows.space);
}

static err_code_t norm_open(op_t *op, err_t *err)
{
    (void)err;
    op->adds_dx = true;
    if (!op->config.training)
        return ERR_OK;
    op->workspace_bytes =
        2 * (size_t)op_norm_rows(&op->config).rows * sizeof(float);
    if (op->config.norm.affine)
        op->scratch_bytes = channels_bytes(shape_of(op));
    return ERR_OK;
}

static norm_work work_of(const op_t *op, const op_args_t *args)
{
    norm_work work = {};

    work.rows = op_norm_rows(&op->config);
    work.params = work.rows.length / work.rows.space;
    work.by_groups = index_divisor_of(work.rows.groups);
    work.by_space = index_divisor_of(work.rows.space);
    work.by_params = index_divisor_of(work.params);
    work.epsilon = op->config.epsilon;
    work.centred = op->config.kind != OP_RMSNORM;
    work.add = args->add_dx;
    work.x = (const float *)args->x;
    work.dy = (const float *)args->dy;
    work.gamma = (const float *)args->params[0];
    work.beta = (const float *)args->params[1];
    work.dx = (float *)args->dx;
    work.kept = op->config.training ? (float *)args->workspace : NULL;
    work.dgamma = (float *)args->dparams[0];
    work.dbeta = (float *)args->dparams[1];
    return work;
}

/* Can all rows be accessed 16 bytes at a time? [to] is y or dx. */
static bool is_wide(const norm_work &work, const void *to)
{
    return work.rows.length % 4 == 0 && pack_aligned(work.x, work.dy, to) &&
           (work.rows.space > 1 || pack_aligned(work.gamma, work.beta));
}

template <typename T>
static void value_start(const norm_work &work, T *y, cudaStream_t stream)
{
    const bool warp = work.rows.length <= ROWS_WARP_LENGTH;
    const bool wide = is_wide(work, y);
    const unsigned blocks =
        rows_blocks(warp ? ROWS_WARP : ROWS_BLOCK, work.rows.rows);

    if (warp && wide)
        LAUNCH((norm_value<ROWS_WARP, 4, T>), blocks, EACH_THREADS, 0, stream,
               work, y);
    else if (warp)
        LAUNCH((norm_value<ROWS_WARP, 1, T>), blocks, EACH_THREADS, 0, stream,
               work, y);
    else if (wide)
        LAUNCH((norm_value<ROWS_BLOCK, 4, T>), blocks, EACH_THREADS, 0, stream,
               work, y);
    else
        LAUNCH((norm_value<ROWS_BLOCK, 1, T>), blocks, EACH_THREADS, 0, stream,
               work, y);
}

static err_code_t norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const norm_work work = work_of(op, args);

    if (op_stored_bf16(&op->out))
        value_start(work, (bf16_t *)args->y, cuda_stream(args));
    else
        value_start(work, (float *)args->y, cuda_stream(args));
    return cuda_started(op, err);
}

static void gradient_start(const norm_work &work, cudaStream_t stream)
{
    const bool warp = work.rows.length <= ROWS_WARP_LENGTH;
    const unsigned blocks =
        rows_blocks(warp ? ROWS_WARP : ROWS_BLOCK, work.rows.rows);

    if (warp && is_wide(work, work.dx))
        LAUNCH((norm_gradient<ROWS_WARP, 4>), blocks, EACH_THREADS, 0, stream,
               work);
    else if (warp)
        LAUNCH((norm_gradient<ROWS_WARP, 1>), blocks, EACH_THREADS, 0, stream,
               work);
    else if (is_wide(work, work.dx))
        LAUNCH((norm_gradient<ROWS_BLOCK, 4>), blocks, EACH_THREADS, 0, stream,
               work);
    else
        LAUNCH((norm_gradient<ROWS_BLOCK, 1>), blocks, EACH_THREADS, 0, stream,
               work);
}

static err_code_t norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const norm_work work = work_of(op, args);

    if (op->config.norm.affine)
        channels_start(param_sums{work}, shape_of(op), args->scratch,
                       cuda_stream(args));
    if (op->config.need_dx)
        gradient_start(work, cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_norm_kernel = {norm_open, NULL, norm_forward,
                                                 norm_backward};
