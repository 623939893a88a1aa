/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* softmax and log_softmax along one dimension; op/ref/softmax.c has the
 * formulas. A row is read three times, of which the later two find it in a
 * cache. The output may lie over the input, since a lane stores only after the
 * sum is known, and then all lanes have read the row. */
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

template <rows_who_t who, int N>
static __global__ void __launch_bounds__(EACH_THREADS)
    softmax_value(softmax_work work)
{
    const rows_place<who> place;
    const op_reduce_t &r = work.r;

    for (int64_t row = place.row; row < r.outer * r.inner; row += place.step) {
        const float *x = work.x + softmax_first(work, row);
        float *y = work.to + softmax_first(work, row);
        float top = -INFINITY, sum = 0, v[N];

        for (int64_t k = place.lane * N; k < r.count; k += place.lanes * N) {
            pack_load(x + k * r.inner, v);
            for (int j = 0; j < N; j++)
                top = larger(top, v[j]);
        }
        top = rows_max<who>(top);
        for (int64_t k = place.lane; k < r.count; k += place.lanes)
            sum += expf(x[k * r.inner] - top);
        sum = rows_sum<who>(sum);
        for (int64_t k = place.lane * N; k < r.count; k += place.lanes * N) {
            pack_load(x + k * r.inner, v);
            for (int j = 0; j < N; j++)
                v[j] =
                    work.logs ? v[j] - top - logf(sum) : expf(v[j] - top) / sum;
            pack_store(y + k * r.inner, v);
        }
    }
}

template <rows_who_t who, int N>
static __global__ void __launch_bounds__(EACH_THREADS)
    softmax_gradient(softmax_work work)
{
    const rows_place<who> place;
    const op_reduce_t &r = work.r;

    for (int64_t row = place.row; row < r.outer * r.inner; row += place.step) {
        const int64_t first = softmax_first(work, row);
        float sum = 0, y[N], dy[N];

        for (int64_t k = place.lane; k < r.count; k += place.lanes) {
            const int64_t at = first + k * r.inner;

            sum += work.logs ? work.dy[at] : work.dy[at] * work.y[at];
        }
        sum = rows_sum<who>(sum);
        for (int64_t k = place.lane * N; k < r.count; k += place.lanes * N) {
            const int64_t at = first + k * r.inner;

            pack_load(work.y + at, y);
            pack_load(work.dy + at, dy);
            for (int j = 0; j < N; j++)
                dy[j] =
                    work.logs ? dy[j] - expf(y[j]) * sum : y[j] * (dy[j] - sum);
            pack_store(work.to + at, dy);
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

/* Can all rows be accessed 16 bytes at a time? */
static bool is_wide(const softmax_work &work, const void *from)
{
    return rows_packed(work.r.count, work.r.inner) &&
           pack_aligned(from, work.dy, work.to);
}

static err_code_t softmax_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const softmax_work work = work_of(op, args, args->y);
    const rows_who_t who = rows_for(work.r.count, work.r.inner);

    ROWS_LAUNCH_PACKED(who, is_wide(work, work.x), softmax_value,
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
    ROWS_LAUNCH_PACKED(who, is_wide(work, work.y), softmax_gradient,
                       rows_blocks(who, work.r.outer * work.r.inner),
                       cuda_stream(args), work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_softmax_kernel = {
    softmax_open, NULL, softmax_forward, softmax_backward};
