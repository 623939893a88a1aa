/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * op_lowrank: all but the products with M. A block of lowrank_vectors makes the
 * vectors of one matrix orthonormal. Thread t computes the elements t, t + 256,
 * ... of each vector, so no thread reads what another thread has written. Only
 * in vector_draw a thread writes other elements; vector_draw ends with a
 * barrier. Sums are formed in float64, in an order that depends only on the
 * length. A multiplication and an addition are never fused, so the bits do not
 * depend on the GPU.
 */
#include "op/cuda/lowrank.h"

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/philox.cuh"
#include "op/cuda/device/reduce.cuh"

/* If a vector without its projections is shorter than this fraction of the
 * vector before, only rounding error is left. */
#define DEPENDENT 1e-6

#define TWO_53 9007199254740992.0

/* Bits of 1/sqrt 2, and of 2^52, for normal_log. */
#define LOG_ROOT 0x3fe6a09e667f3bcdull
#define LOG_SHIFT 0x4330000000000000ull

/* ---- random numbers ------------------------------------------------------ */

namespace
{

/* A stream of base/rng.h. */
struct random_stream {
    uint2 key;
    uint32_t third, fourth; /* of the counter */
};

} // namespace

/* Like rng_open. */
static __device__ random_stream random_open(uint64_t seed, uint32_t purpose,
                                            uint64_t a, uint64_t b)
{
    const uint4 mixed =
        philox(make_uint2((uint32_t)seed, (uint32_t)(seed >> 32)),
               make_uint4(purpose, 0, 0, 0));
    const uint4 start = philox(make_uint2(mixed.x, mixed.y),
                               make_uint4((uint32_t)a, (uint32_t)(a >> 32),
                                          (uint32_t)b ^ mixed.z,
                                          (uint32_t)(b >> 32) ^ mixed.w));

    return {make_uint2(start.x, start.y), start.z, start.w};
}

/* 2 rng_uniform - 1, of two numbers of a block. */
static __device__ __forceinline__ double random_even(uint32_t low,
                                                     uint32_t high)
{
    const uint64_t bits = (uint64_t)high << 32 | low;

    return 2 * ((double)(bits >> 11) / TWO_53) - 1;
}

/* rng_log of base/rng_log.h. */
static __device__ double normal_log(double x)
{
    unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned long long power = (bits - LOG_ROOT + (1024ull << 52)) >> 52;
    double m, s, square, sum, exponent;

    bits -= (power << 52) - (1024ull << 52);
    m = __longlong_as_double((long long)bits);
    exponent = __longlong_as_double((long long)(power | LOG_SHIFT)) -
               (TWO_53 / 2 + 1024);
    s = __ddiv_rn(m - 1, m + 1);
    square = __dmul_rn(s, s);
    sum = 1.0 / 21;
#pragma unroll
    for (int odd = 19; odd >= 1; odd -= 2)
        sum = __dadd_rn(__dmul_rn(sum, square), 1.0 / odd);
    return __dadd_rn(__dmul_rn(2 * s, sum),
                     __dmul_rn(exponent, 0.69314718055994530942));
}

/* The normal number of block [i] of the stream, if the block has one. */
static __device__ bool normal_of(const random_stream &stream, uint64_t i,
                                 double *out)
{
    const uint4 block =
        philox(stream.key, make_uint4((uint32_t)i, (uint32_t)(i >> 32),
                                      stream.third, stream.fourth));
    const double u = random_even(block.x, block.y);
    const double v = random_even(block.z, block.w);
    const double square = __dadd_rn(__dmul_rn(u, u), __dmul_rn(v, v));

    if (square >= 1 || square == 0)
        return false;
    *out = __dmul_rn(u, sqrt(__ddiv_rn(-2 * normal_log(square), square)));
    return true;
}

/* Fill to[count] with what calls of rng_normal would return. Some blocks of the
 * generator have no number: each thread counts the numbers before its own. */
static __device__ void vector_draw(float *to, int64_t count, uint64_t step,
                                   uint64_t number, int k)
{
    __shared__ unsigned found[EACH_THREADS / 32]; /* by each warp */
    const random_stream stream =
        random_open(step, RNG_LOWRANK, number, (uint64_t)k);
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t done = 0;

    for (uint64_t first = 0; done < count; first += EACH_THREADS) {
        double value = 0;
        const bool has = normal_of(stream, first + threadIdx.x, &value);
        const unsigned mask = __ballot_sync(0xffffffffu, has);
        int64_t at = done + __popc(mask & ((1u << lane) - 1));

        if (lane == 0)
            found[warp] = (unsigned)__popc(mask);
        __syncthreads();
        for (unsigned w = 0; w < EACH_THREADS / 32; w++) {
            at += w < warp ? found[w] : 0;
            done += found[w];
        }
        if (has && at < count)
            to[at] = (float)value;
        __syncthreads();
    }
}

/* ---- orthonormal vectors ------------------------------------------------- */

static __device__ double vector_dot(const float *a, const float *b,
                                    int64_t count)
{
    __shared__ double part[32];
    double sum = 0;

    for (int64_t i = threadIdx.x; i < count; i += EACH_THREADS)
        sum = __dadd_rn(sum, __dmul_rn(a[i], b[i]));
    return block_sum(sum, part);
}

static __device__ void vector_scale(float *v, int64_t count, float factor)
{
    for (int64_t i = threadIdx.x; i < count; i += EACH_THREADS)
        v[i] *= factor;
}

/* Subtract from vector [k] its projections on the vectors before it. Return the
 * new length of vector [k]. */
static __device__ double vector_project(float *vectors, int k, int64_t count)
{
    float *v = vectors + k * count;

    for (int j = 0; j < k; j++) {
        const float *u = vectors + j * count;
        const float factor = (float)-vector_dot(v, u, count);

        for (int64_t i = threadIdx.x; i < count; i += EACH_THREADS)
            v[i] = __fadd_rn(v[i], __fmul_rn(factor, u[i]));
    }
    return sqrt(vector_dot(v, v, count));
}

/* lowrank_orthonormalize of ddp/lowrank.h. */
static __device__ int vectors_make(float *vectors, int rank, int64_t count)
{
    int first = rank;

    for (int k = 0; k < rank; k++) {
        float *v = vectors + k * count;
        const double before = sqrt(vector_dot(v, v, count));
        double left = vector_project(vectors, k, count);

        if (left <= DEPENDENT * before) {
            for (int64_t i = threadIdx.x; i < count; i += EACH_THREADS)
                v[i] = 0;
            first = k < first ? k : first;
            continue;
        }
        vector_scale(v, count, (float)__ddiv_rn(1.0, left));
        left = vector_project(vectors, k, count);
        vector_scale(v, count, (float)__ddiv_rn(1.0, left));
    }
    return first;
}

static __global__ void __launch_bounds__(EACH_THREADS)
    lowrank_vectors(cuda_lowrank_call_t call, bool q)
{
    const op_lowrank_matrix_t matrix = call.table[blockIdx.x];
    const int64_t count = q ? matrix.columns : matrix.rows;
    float *vectors = q ? matrix.q : matrix.p;

    for (int k = 0; q && call.draw && k < call.rank; k++)
        vector_draw(vectors + k * count, count, call.step, matrix.number, k);
    for (int tries = 0; tries <= call.rank; tries++) {
        const int k = vectors_make(vectors, call.rank, count);

        if (!q || k == call.rank || tries == call.rank)
            break;
        vector_draw(vectors + k * count, count, call.step, matrix.number, k);
    }
}

/* ---- rows of M ----------------------------------------------------------- */

/* Call work(row, column, index) for the elements of [matrix]. A block of the
 * grid's row treats one row at a time. */
template <typename Work>
static __device__ void rows_each(const op_lowrank_matrix_t &matrix,
                                 const Work &work)
{
    for (int64_t row = blockIdx.x; row < matrix.rows; row += gridDim.x)
        for (int64_t column = threadIdx.x; column < matrix.columns;
             column += EACH_THREADS)
            work(row, column, row * matrix.columns + column);
}

static __global__ void __launch_bounds__(EACH_THREADS)
    lowrank_add(cuda_lowrank_call_t call)
{
    const op_lowrank_matrix_t matrix = call.table[blockIdx.y];

    rows_each(matrix, [&](int64_t, int64_t, int64_t i) {
        matrix.m[i] = __fadd_rn(matrix.m[i], matrix.residual[i]);
    });
}

/* Return [start] plus [sign] times an element of P Q^T. The vectors are added
 * one after the other. */
static __device__ float lowrank_at(const op_lowrank_matrix_t &matrix, int rank,
                                   int64_t row, int64_t column, float start,
                                   float sign)
{
    for (int k = 0; k < rank; k++)
        start =
            __fadd_rn(start, __fmul_rn(sign * matrix.p[k * matrix.rows + row],
                                       matrix.q[k * matrix.columns + column]));
    return start;
}

static __global__ void __launch_bounds__(EACH_THREADS)
    lowrank_rest(cuda_lowrank_call_t call)
{
    const op_lowrank_matrix_t matrix = call.table[blockIdx.y];

    rows_each(matrix, [&](int64_t row, int64_t column, int64_t i) {
        matrix.residual[i] =
            lowrank_at(matrix, call.rank, row, column, matrix.m[i], -1);
    });
}

static __global__ void __launch_bounds__(EACH_THREADS)
    lowrank_expand(cuda_lowrank_call_t call)
{
    const op_lowrank_matrix_t matrix = call.table[blockIdx.y];

    rows_each(matrix, [&](int64_t row, int64_t column, int64_t i) {
        matrix.m[i] = lowrank_at(matrix, call.rank, row, column, 0, 1);
    });
}

/* ---- starting ------------------------------------------------------------ */

/* Grids of the kernels for rows. */
static dim3 grid_of(const cuda_lowrank_call_t *call)
{
    return dim3(each_blocks(call->rows, 1), (unsigned)call->count);
}

static err_code_t started(err_t *err)
{
    return cuda_kernel_started(cudaGetLastError(), "computes for powersgd",
                               err);
}

extern "C" err_code_t cuda_lowrank_add(const cuda_lowrank_call_t *call,
                                       dev_stream_t *stream, err_t *err)
{
    LAUNCH(lowrank_add, grid_of(call), EACH_THREADS, 0, dev_cuda_stream(stream),
           *call);
    return started(err);
}

extern "C" err_code_t cuda_lowrank_q(const cuda_lowrank_call_t *call,
                                     dev_stream_t *stream, err_t *err)
{
    LAUNCH(lowrank_vectors, (unsigned)call->count, EACH_THREADS, 0,
           dev_cuda_stream(stream), *call, true);
    return started(err);
}

extern "C" err_code_t cuda_lowrank_p(const cuda_lowrank_call_t *call,
                                     dev_stream_t *stream, err_t *err)
{
    LAUNCH(lowrank_vectors, (unsigned)call->count, EACH_THREADS, 0,
           dev_cuda_stream(stream), *call, false);
    return started(err);
}

extern "C" err_code_t cuda_lowrank_rest(const cuda_lowrank_call_t *call,
                                        dev_stream_t *stream, err_t *err)
{
    LAUNCH(lowrank_rest, grid_of(call), EACH_THREADS, 0,
           dev_cuda_stream(stream), *call);
    return started(err);
}

extern "C" err_code_t cuda_lowrank_expand(const cuda_lowrank_call_t *call,
                                          dev_stream_t *stream, err_t *err)
{
    LAUNCH(lowrank_expand, grid_of(call), EACH_THREADS, 0,
           dev_cuda_stream(stream), *call);
    return started(err);
}
