/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The sum of a channel has two steps: block (c, k) sums channel c of chunk k of
 * the samples; then the columns of [chunks, C] are summed. */
#include "op/cuda/planes.h"

#include "op/cuda/columns.h"
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/reduce.cuh"
#include "op/cuda/device/round.cuh"
#include "op/cuda/room.h"

/* Elements of a channel that a block sums at least, and chunks at most. */
#define CHUNK_ELEMS 8192
#define CHUNKS_MAX 64

namespace
{

struct bias_work {
    float *y;
    const float *b;
    index_divisor_t C, space;

    __device__ float bias(int64_t i) const
    {
        int64_t plane = index_div(i, space);

        return b[index_split(&plane, C)];
    }

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N], now = bias(i);

        pack_load(y + i, v);
        for (int k = 0; k < N; k++) {
            if (k > 0 && space.by % N != 0)
                now = bias(i + k);
            v[k] += now;
        }
        pack_store(y + i, v);
    }
};

__global__ void __launch_bounds__(EACH_THREADS)
    planes_sum(cuda_planes_t p, index_divisor_t space, int64_t each,
               op_type_t type, const float *dy, float *partial)
{
    __shared__ float part[32];
    const int64_t c = blockIdx.x;
    const int64_t first = blockIdx.y * each;
    const int64_t last = first + each < p.N ? first + each : p.N;
    float sum = 0;

    for (int64_t i = threadIdx.x; i < (last - first) * p.space;
         i += EACH_THREADS) {
        int64_t n = i;
        const int64_t s = index_split(&n, space);

        sum += round_factor(type, dy[((first + n) * p.C + c) * p.space + s]);
    }
    sum = block_sum(sum, part);
    if (threadIdx.x == 0)
        partial[blockIdx.y * p.C + c] = sum;
}

} // namespace

extern "C" err_code_t cuda_planes_bias(const op_t *op, const op_args_t *args,
                                       const cuda_planes_t *planes, float *y,
                                       const float *b, err_t *err)
{
    const bias_work work = {y, b, index_divisor_of(planes->C),
                            index_divisor_of(planes->space)};

    each_start<4>(work, planes->N * planes->C * planes->space, pack_aligned(y),
                  cuda_stream(args));
    return cuda_started(op, err);
}

static int64_t chunks_of(const cuda_planes_t *planes)
{
    int64_t chunks =
        (planes->N * planes->space + CHUNK_ELEMS - 1) / CHUNK_ELEMS;

    if (chunks > planes->N)
        chunks = planes->N;
    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

/* Where the scratch of the sum of columns is, behind [chunks, C]. */
static size_t columns_at(const cuda_planes_t *planes)
{
    size_t end = 0;

    cuda_room_floats(&end, chunks_of(planes) * planes->C);
    return end;
}

extern "C" size_t cuda_planes_scratch(const cuda_planes_t *planes)
{
    return columns_at(planes) +
           cuda_columns_scratch(chunks_of(planes), planes->C);
}

extern "C" err_code_t cuda_planes_sum(const op_t *op, const op_args_t *args,
                                      const cuda_planes_t *planes,
                                      const float *dy, float *db, void *scratch,
                                      err_t *err)
{
    float *partial = (float *)scratch;
    /* conv_transpose does not round. */
    const op_type_t type =
        op->config.kind == OP_CONV2D ? op->config.compute_type : OP_FLOAT32;
    const int64_t chunks = chunks_of(planes);
    cuda_columns_t columns = {};
    err_code_t rc;

    LAUNCH(planes_sum, dim3((unsigned)planes->C, (unsigned)chunks),
           EACH_THREADS, 0, cuda_stream(args), *planes,
           index_divisor_of(planes->space), (planes->N + chunks - 1) / chunks,
           type, dy, partial);
    rc = cuda_started(op, err);
    if (rc != ERR_OK)
        return rc;
    columns.rows = chunks;
    columns.columns = planes->C;
    columns.curve = OP_NONE;
    columns.dy = partial;
    columns.sum = db;
    columns.add = args->add;
    columns.scratch = cuda_room_at(scratch, columns_at(planes));
    return cuda_columns_run(op, args, &columns, err);
}
