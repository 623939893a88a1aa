/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* softmax and log_softmax along one dimension; op/ref/softmax.c has the
 * formulas. A row is read three times, of which the later two find it in a
 * cache. */
#include "op/cuda/device/rows.cuh"

namespace
{

struct softmax_work {
    op_reduce_t r;
    index_divisor_t inner; /* r.inner */
    bool logs;             /* log_softmax */
    const float *x, *y, *dy;
    float *to; /* y or dx */
};

} // namespace

/* Index of the first element of [row]. */
static __device__ __forceinline__ int64_t
softmax_first(const softmax_work &work, int64_t row)
{
    const int64_t inner = index_split(&row, work.inner);

    return row * work.r.count * work.r.inner + inner;
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS)
    softmax_value(softmax_work work)
{
    const rows_place<who> place;
    const op_reduce_t &r = work.r;

    for (int64_t row = place.row; row < r.outer * r.inner; row += place.step) {
        const float *x = work.x + softmax_first(work, row);
        float *y = work.to + softmax_first(work, row);
        float top = -INFINITY, sum = 0;

        for (int64_t k = place.lane; k < r.count; k += place.lanes)
            top = larger(top, x[k * r.inner]);
        top = rows_max<who>(top);
        for (int64_t k = place.lane; k < r.count; k += place.lanes)
            sum += expf(x[k * r.inner] - top);
        sum = rows_sum<who>(sum);
        for (int64_t k = place.lane; k < r.count; k += place.lanes) {
            const float v = x[k * r.inner] - top;

            y[k * r.inner] = work.logs ? v - logf(sum) : expf(v) / sum;
        }
    }
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS)
    softmax_gradient(softmax_work work)
{
    const rows_place<who> place;
    const op_reduce_t &r = work.r;

    for (int64_t row = place.row; row < r.outer * r.inner; row += place.step) {
        const int64_t first = softmax_first(work, row);
        float sum = 0;

        for (int64_t k = place.lane; k < r.count; k += place.lanes) {
            const int64_t at = first + k * r.inner;

            sum += work.logs ? work.dy[at] : work.dy[at] * work.y[at];
        }
        sum = rows_sum<who>(sum);
        for (int64_t k = place.lane; k < r.count; k += place.lanes) {
            const int64_t at = first + k * r.inner;
            const float y = work.y[at], dy = work.dy[at];

            work.to[at] = work.logs ? dy - expf(y) * sum : y * (dy - sum);
        }
    }
}

static err_code_t softmax_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_y = true;
    op->reads_x = false;
    return ERR_OK;
}

static softmax_work work_of(const op_t *op, const op_args_t *args, void *to)
{
    const op_reduce_t r = op_reduce_of(&op->config);

    return softmax_work{r,
                        index_divisor_of(r.inner),
                        op->config.kind == OP_LOG_SOFTMAX,
                        (const float *)args->x,
                        (const float *)args->y,
                        (const float *)args->dy,
                        (float *)to};
}

static err_code_t softmax_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const softmax_work work = work_of(op, args, args->y);
    const rows_who_t who = rows_for(work.r.count, work.r.inner);

    ROWS_LAUNCH(who, softmax_value,
                rows_blocks(who, work.r.outer * work.r.inner),
                cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t softmax_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const softmax_work work = work_of(op, args, args->dx);
    const rows_who_t who = rows_for(work.r.count, work.r.inner);

    if (!op->config.need_dx)
        return ERR_OK;
    ROWS_LAUNCH(who, softmax_gradient,
                rows_blocks(who, work.r.outer * work.r.inner),
                cuda_stream(args), work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_softmax_kernel = {
    softmax_open, NULL, softmax_forward, softmax_backward};
