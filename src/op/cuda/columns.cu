/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The sum of columns has two steps. A block sums up to CHUNK_ROWS rows or more
 * of 32 * WIDE columns and writes one row of [chunks, columns]; then a thread
 * adds a column of these, from the first to the last.
 */
#include "op/cuda/columns.h"

#include <cuda_bf16.h>

#include "op/cuda/cuda.h"
#include "op/cuda/device/curves.cuh"
#include "op/cuda/launch.h"

#define THREADS 256
#define CHUNK_ROWS 64
#define CHUNKS_MAX 128
#define LANES 8 /* rows that a block reads at once */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static unsigned blocks_for(int64_t count)
{
    const int64_t blocks = ceil_div(count, THREADS);

    return (unsigned)(blocks < 65536 ? blocks : 65536);
}

/* WIDE numbers that lie side by side. */
template <int WIDE> struct __align__(4 * WIDE) wide_floats
{
    float at[WIDE];
};

template <int WIDE> struct __align__(2 * WIDE) wide_halves
{
    __nv_bfloat16 at[WIDE];
};

template <int WIDE, bool BF16>
__device__ __forceinline__ void store(void *to, int64_t i,
                                      const wide_floats<WIDE> &values)
{
    if constexpr (BF16) {
        wide_halves<WIDE> rounded;

        for (int k = 0; k < WIDE; k++)
            rounded.at[k] = __float2bfloat16(values.at[k]);
        static_cast<wide_halves<WIDE> *>(to)[i] = rounded;
    } else {
        static_cast<wide_floats<WIDE> *>(to)[i] = values;
    }
}

static bool is_wide(const void *a, const void *b, int64_t count)
{
    return ((uintptr_t)a | (uintptr_t)b) % 16 == 0 && count % 4 == 0;
}

/* ---- element by element -------------------------------------------------- */

template <op_kind_t CURVE, bool BF16, int WIDE>
__global__ void __launch_bounds__(THREADS)
    activate(const float *h, void *y, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += step) {
        wide_floats<WIDE> values =
            reinterpret_cast<const wide_floats<WIDE> *>(h)[i];

        for (int k = 0; k < WIDE; k++)
            values.at[k] = curve<CURVE>(values.at[k]);
        store<WIDE, BF16>(y, i, values);
    }
}

template <op_kind_t CURVE, bool BF16>
static void activate_run(cudaStream_t stream, const float *h, void *y,
                         int64_t count)
{
    if (is_wide(h, y, count))
        LAUNCH((activate<CURVE, BF16, 4>), blocks_for(count / 4), THREADS, 0,
               stream, h, y, count / 4);
    else
        LAUNCH((activate<CURVE, BF16, 1>), blocks_for(count), THREADS, 0,
               stream, h, y, count);
}

template <op_kind_t CURVE>
static void activate_store(cudaStream_t stream, const float *h, void *y,
                           bool bf16, int64_t count)
{
    if (bf16)
        activate_run<CURVE, true>(stream, h, y, count);
    else
        activate_run<CURVE, false>(stream, h, y, count);
}

err_code_t cuda_columns_activate(dev_stream_t *stream, op_kind_t curve,
                                 const float *h, void *y, bool bf16,
                                 int64_t count, err_t *err)
{
    cudaStream_t on = dev_cuda_stream(stream);

    if (curve == OP_GELU)
        activate_store<OP_GELU>(on, h, y, bf16, count);
    else if (curve == OP_GELU_TANH)
        activate_store<OP_GELU_TANH>(on, h, y, bf16, count);
    else if (curve == OP_SILU)
        activate_store<OP_SILU>(on, h, y, bf16, count);
    else
        activate_store<OP_NONE>(on, h, y, bf16, count);
    return cuda_launched("an activation", err);
}

err_code_t cuda_columns_round(dev_stream_t *stream, void *to, const float *from,
                              int64_t count, err_t *err)
{
    return cuda_columns_activate(stream, OP_NONE, from, to, true, count, err);
}

/* ---- sums of columns ----------------------------------------------------- */

struct pass {
    int64_t rows, columns; /* columns: in units of WIDE */
    const float *dy, *h;
    void *dh;
    float *partial; /* [chunks, columns]; NULL: no sums */
};

/* Block (x, y) works on columns 32 x to 32 x + 31 and on chunk y of the rows.
 */
template <op_kind_t CURVE, bool BF16, int WIDE>
__global__ void __launch_bounds__(THREADS) columns_pass(pass p)
{
    __shared__ float parts[LANES][32 * WIDE];
    const int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x;
    const int64_t each = (p.rows + gridDim.y - 1) / gridDim.y;
    const int64_t first = blockIdx.y * each;
    const int64_t last = first + each < p.rows ? first + each : p.rows;
    float sum[WIDE] = {};

    for (int64_t row = first + threadIdx.y; row < last && column < p.columns;
         row += LANES) {
        const int64_t i = row * p.columns + column;
        wide_floats<WIDE> values =
            reinterpret_cast<const wide_floats<WIDE> *>(p.dy)[i];

        if constexpr (CURVE != OP_NONE) {
            const wide_floats<WIDE> h =
                reinterpret_cast<const wide_floats<WIDE> *>(p.h)[i];

            for (int k = 0; k < WIDE; k++)
                values.at[k] *= curve_slope<CURVE>(h.at[k]);
        }
        if (p.dh != nullptr)
            store<WIDE, BF16>(p.dh, i, values);
        for (int k = 0; k < WIDE; k++)
            sum[k] += values.at[k];
    }
    if (p.partial == nullptr)
        return;
    for (int k = 0; k < WIDE; k++)
        parts[threadIdx.y][threadIdx.x * WIDE + k] = sum[k];
    __syncthreads();
    if (threadIdx.y > 0 || column >= p.columns)
        return;
    for (int k = 0; k < WIDE; k++) {
        float all = 0;

        for (int lane = 0; lane < LANES; lane++)
            all += parts[lane][threadIdx.x * WIDE + k];
        p.partial[((int64_t)blockIdx.y * p.columns + column) * WIDE + k] = all;
    }
}

__global__ void __launch_bounds__(THREADS)
    columns_finish(const float *partial, int64_t chunks, int64_t columns,
                   float *sum, bool add)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    float all = 0;

    if (column >= columns)
        return;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        all += partial[chunk * columns + column];
    sum[column] = add ? sum[column] + all : all;
}

static int64_t chunks_of(int64_t rows)
{
    const int64_t chunks = ceil_div(rows, CHUNK_ROWS);

    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

size_t cuda_columns_scratch(int64_t rows, int64_t columns)
{
    return (size_t)(chunks_of(rows) * columns) * sizeof(float);
}

template <op_kind_t CURVE, bool BF16>
static void pass_run(cudaStream_t stream, pass p)
{
    const dim3 block(32, LANES);
    const unsigned chunks = (unsigned)chunks_of(p.rows);

    if (is_wide(p.dy, p.h, p.columns) && is_wide(p.dh, p.dh, 4)) {
        p.columns /= 4;
        LAUNCH((columns_pass<CURVE, BF16, 4>),
               dim3((unsigned)ceil_div(p.columns, 32), chunks), block, 0,
               stream, p);
    } else {
        LAUNCH((columns_pass<CURVE, BF16, 1>),
               dim3((unsigned)ceil_div(p.columns, 32), chunks), block, 0,
               stream, p);
    }
}

template <op_kind_t CURVE>
static void pass_store(cudaStream_t stream, const pass &p, bool bf16)
{
    if (bf16)
        pass_run<CURVE, true>(stream, p);
    else
        pass_run<CURVE, false>(stream, p);
}

err_code_t cuda_columns_run(dev_stream_t *stream, const cuda_columns_t *columns,
                            err_t *err)
{
    cudaStream_t on = dev_cuda_stream(stream);
    const pass p = {columns->rows,
                    columns->columns,
                    columns->dy,
                    columns->h,
                    columns->dh,
                    columns->sum == nullptr
                        ? nullptr
                        : static_cast<float *>(columns->scratch)};
    err_code_t rc;

    if (columns->curve == OP_GELU)
        pass_store<OP_GELU>(on, p, columns->bf16);
    else if (columns->curve == OP_GELU_TANH)
        pass_store<OP_GELU_TANH>(on, p, columns->bf16);
    else if (columns->curve == OP_SILU)
        pass_store<OP_SILU>(on, p, columns->bf16);
    else
        pass_store<OP_NONE>(on, p, columns->bf16);
    rc = cuda_launched("a sum of columns", err);
    if (rc != ERR_OK || columns->sum == nullptr)
        return rc;
    LAUNCH(columns_finish, (unsigned)ceil_div(columns->columns, THREADS),
           THREADS, 0, on, p.partial, chunks_of(columns->rows),
           columns->columns, columns->sum, columns->add);
    return cuda_launched("a sum of columns", err);
}
