/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The sum of columns has two steps. A block sums CHUNK_ROWS rows or more of 32
 * N columns and writes a part of one row of [chunks, columns]; then a thread
 * adds a column of these, from the first to the last.
 */
#include "op/cuda/columns.h"

#include "op/cuda/device/curves.cuh"
#include "op/cuda/device/each.cuh"

#define CHUNK_ROWS 64
#define CHUNKS_MAX 128
#define LANES 8 /* rows that a block reads at once */

/* ---- element by element -------------------------------------------------- */

namespace
{

template <op_kind_t CURVE, typename T> struct curve_work {
    const float *h;
    T *y;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(h + i, v);
        for (int k = 0; k < N; k++)
            v[k] = curve<CURVE>(v[k]);
        pack_store(y + i, v);
    }
};

} // namespace

template <op_kind_t CURVE>
static void curve_start(const cuda_curve_t *c, cudaStream_t stream)
{
    const bool wide = pack_aligned(c->h, c->y);

    if (c->bf16)
        each_start<8>(curve_work<CURVE, bf16_t>{c->h, (bf16_t *)c->y}, c->count,
                      wide, stream);
    else
        each_start<4>(curve_work<CURVE, float>{c->h, (float *)c->y}, c->count,
                      wide, stream);
}

extern "C" err_code_t cuda_columns_activate(const op_t *op,
                                            const op_args_t *args,
                                            const cuda_curve_t *curve,
                                            err_t *err)
{
    const cudaStream_t stream = cuda_stream(args);

    if (curve->kind == OP_GELU)
        curve_start<OP_GELU>(curve, stream);
    else if (curve->kind == OP_GELU_TANH)
        curve_start<OP_GELU_TANH>(curve, stream);
    else if (curve->kind == OP_SILU)
        curve_start<OP_SILU>(curve, stream);
    else
        curve_start<OP_NONE>(curve, stream);
    return cuda_started(op, err);
}

extern "C" err_code_t cuda_columns_round(const op_t *op, const op_args_t *args,
                                         void *to, const void *from,
                                         int64_t count, err_t *err)
{
    const cuda_curve_t same = {OP_NONE, (const float *)from, to, true, count};

    return cuda_columns_activate(op, args, &same, err);
}

namespace
{

struct widen_work {
    const bf16_t *from;
    float *to;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(from + i, v);
        pack_store(to + i, v);
    }
};

} // namespace

extern "C" err_code_t cuda_columns_widen(const op_t *op, const op_args_t *args,
                                         void *to, const void *from,
                                         int64_t count, err_t *err)
{
    const widen_work work = {(const bf16_t *)from, (float *)to};

    each_start<8>(work, count, pack_aligned(from, to), cuda_stream(args));
    return cuda_started(op, err);
}

/* ---- sums of columns ----------------------------------------------------- */

namespace
{

/* From dy of type From to dh of type T. */
template <typename From, typename T> struct pass {
    int64_t rows, columns;
    const From *dy;
    const float *h;
    T *dh;          /* NULL: not written */
    float *partial; /* [chunks, columns]; NULL: no sums */
};

/* Block (x, y) works on columns 32 N x to 32 N (x + 1) - 1 and on chunk y of
 * the rows. */
template <op_kind_t CURVE, typename From, typename T, int N>
__global__ void __launch_bounds__(32 * LANES) pass_run(pass<From, T> p)
{
    __shared__ float parts[LANES][32 * N];
    const int64_t column = ((int64_t)blockIdx.x * 32 + threadIdx.x) * N;
    const int64_t each = (p.rows + gridDim.y - 1) / gridDim.y;
    const int64_t first = blockIdx.y * each;
    const int64_t last = first + each < p.rows ? first + each : p.rows;
    float sum[N] = {};

    for (int64_t row = first + threadIdx.y; row < last && column < p.columns;
         row += LANES) {
        const int64_t i = row * p.columns + column;
        float v[N], h[N];

        pack_load(p.dy + i, v);
        if constexpr (CURVE != OP_NONE)
            pack_load(p.h + i, h);
        for (int k = 0; k < N && CURVE != OP_NONE; k++)
            v[k] *= curve_slope<CURVE>(h[k]);
        if (p.dh != nullptr)
            pack_store(p.dh + i, v);
        for (int k = 0; k < N; k++)
            sum[k] += v[k];
    }
    if (p.partial == nullptr)
        return;
    for (int k = 0; k < N; k++)
        parts[threadIdx.y][threadIdx.x * N + k] = sum[k];
    __syncthreads();
    if (threadIdx.y > 0 || column >= p.columns)
        return;
    for (int k = 0; k < N; k++) {
        float all = 0;

        for (int lane = 0; lane < LANES; lane++)
            all += parts[lane][threadIdx.x * N + k];
        p.partial[blockIdx.y * p.columns + column + k] = all;
    }
}

__global__ void __launch_bounds__(EACH_THREADS)
    columns_finish(const float *partial, int64_t chunks, int64_t columns,
                   int64_t kept, float *sum, bool add)
{
    const int64_t column = each_first();
    float all = 0;

    if (column >= kept)
        return;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        all += partial[chunk * columns + column];
    sum[column] = add ? sum[column] + all : all;
}

} // namespace

static int64_t chunks_of(int64_t rows)
{
    const int64_t chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;

    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

extern "C" size_t cuda_columns_scratch(int64_t rows, int64_t columns)
{
    return (size_t)(chunks_of(rows) * columns) * sizeof(float);
}

template <op_kind_t CURVE, typename From, typename T>
static void pass_start(const cuda_columns_t *c, cudaStream_t stream)
{
    constexpr int N = sizeof(From) + sizeof(T) == 8 ? 4 : 8;
    const pass<From, T> p = {
        c->rows, c->columns, (const From *)c->dy,
        c->h,    (T *)c->dh, c->sum == NULL ? NULL : (float *)c->scratch};
    const bool wide = pack_aligned(c->dy, c->h, c->dh) && c->columns % N == 0;
    const int64_t each = wide ? 32 * N : 32;
    const dim3 grid((unsigned)((c->columns + each - 1) / each),
                    (unsigned)chunks_of(c->rows)),
        block(32, LANES);

    if (wide)
        LAUNCH((pass_run<CURVE, From, T, N>), grid, block, 0, stream, p);
    else
        LAUNCH((pass_run<CURVE, From, T, 1>), grid, block, 0, stream, p);
}

template <op_kind_t CURVE>
static void pass_store(const cuda_columns_t *c, cudaStream_t stream)
{
    if (c->bf16)
        pass_start<CURVE, float, bf16_t>(c, stream);
    else
        pass_start<CURVE, float, float>(c, stream);
}

extern "C" err_code_t cuda_columns_run(const op_t *op, const op_args_t *args,
                                       const cuda_columns_t *columns,
                                       err_t *err)
{
    const cudaStream_t stream = cuda_stream(args);
    err_code_t rc;

    if (columns->dy_bf16)
        pass_start<OP_NONE, bf16_t, float>(columns, stream);
    else if (columns->curve == OP_GELU)
        pass_store<OP_GELU>(columns, stream);
    else if (columns->curve == OP_GELU_TANH)
        pass_store<OP_GELU_TANH>(columns, stream);
    else if (columns->curve == OP_SILU)
        pass_store<OP_SILU>(columns, stream);
    else
        pass_store<OP_NONE>(columns, stream);
    rc = cuda_started(op, err);
    if (rc != ERR_OK || columns->sum == NULL)
        return rc;
    LAUNCH(columns_finish, each_blocks(columns->columns, EACH_THREADS),
           EACH_THREADS, 0, stream, (const float *)columns->scratch,
           chunks_of(columns->rows), columns->columns,
           columns->kept > 0 ? columns->kept : columns->columns, columns->sum,
           columns->add);
    return cuda_started(op, err);
}
