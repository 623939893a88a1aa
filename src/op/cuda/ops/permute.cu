/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * permute: y is x with the dimensions of a sample in another order. If the last
 * dimension of y is the last one of x, a thread copies elements in the order of
 * y; otherwise a block turns tiles of 32 times 32 elements in shared memory, so
 * that it reads and writes neighbours.
 */
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

#define TILE 32
#define TILE_ROWS (EACH_THREADS / TILE)

namespace
{

/* The dimensions in the order of the target, the last one first. Index k of
 * dimension d is k * from[d] elements of the source, and k * to[d] of the
 * target. */
struct order {
    int ndim;
    int64_t dims[OP_DIMS_MAX], from[OP_DIMS_MAX], to[OP_DIMS_MAX];
    index_divisor_t by[OP_DIMS_MAX]; /* the dimensions */
};

struct permute_work {
    order o;
    int64_t count;
    const float *from;
    float *to;
    /* Tiles: of dimension 0, and of dimension [other], which is the last one of
     * the source. */
    int other;
    index_divisor_t tiles, other_tiles;
    int64_t all_tiles;
};

/* Copy in the order of the target. Packs do not cross dimension 0. */
struct permute_copy {
    permute_work w;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t source = 0, left = i;
        float v[N];

        for (int d = 0; d < w.o.ndim; d++)
            source += index_split(&left, w.o.by[d]) * w.o.from[d];
        pack_load(w.from + source, v);
        pack_store(w.to + i, v);
    }
};

} // namespace

static __global__ void __launch_bounds__(EACH_THREADS)
    permute_tiles(permute_work w)
{
    __shared__ float tile[TILE][TILE + 1];
    const order &o = w.o;

    for (int64_t t = blockIdx.x; t < w.all_tiles; t += gridDim.x) {
        int64_t left = t, source = 0, target = 0;
        const int64_t row = index_split(&left, w.tiles) * TILE;
        const int64_t column = index_split(&left, w.other_tiles) * TILE;

        for (int d = 1; d < o.ndim; d++) {
            const int64_t k =
                d == w.other ? column : index_split(&left, o.by[d]);

            source += k * o.from[d];
            target += k * o.to[d];
        }
        source += row * o.from[0];
        target += row;
        for (int r = threadIdx.y; r < TILE; r += TILE_ROWS)
            if (row + r < o.dims[0] && column + threadIdx.x < o.dims[w.other])
                tile[r][threadIdx.x] =
                    w.from[source + r * o.from[0] + threadIdx.x];
        __syncthreads();
        for (int c = threadIdx.y; c < TILE; c += TILE_ROWS)
            if (column + c < o.dims[w.other] && row + threadIdx.x < o.dims[0])
                w.to[target + c * o.to[w.other] + threadIdx.x] =
                    tile[threadIdx.x][c];
        __syncthreads();
    }
}

static err_code_t permute_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Add dimension [next] to [o]: a new one, or joined to the one before. */
static void order_add(order *o, int64_t size, int64_t from, int64_t to)
{
    const int last = o->ndim - 1;

    if (size == 1)
        return;
    if (last >= 0 && from == o->from[last] * o->dims[last] &&
        to == o->to[last] * o->dims[last]) {
        o->dims[last] *= size;
        return;
    }
    o->dims[o->ndim] = size;
    o->from[o->ndim] = from;
    o->to[o->ndim++] = to;
}

/* The order of y ([back]: of dx) as target. */
static order order_of(const op_t *op, bool back)
{
    const op_desc_t *in = &op->config.in, *out = &op->out;
    int64_t x[OP_DIMS_MAX], y[OP_DIMS_MAX], step = 1; /* by dimensions of x */
    int at[OP_DIMS_MAX] = {0};                        /* y's, in x */
    order o = {};

    for (int d = in->ndim - 1; d >= 0; d--) {
        x[d] = step;
        step *= in->dims[d];
    }
    step = 1;
    for (int d = out->ndim - 1; d >= 0; d--) {
        at[d] = d == 0 ? 0 : (int)op->config.view.dims[d - 1];
        y[at[d]] = step;
        step *= out->dims[d];
    }
    for (int d = in->ndim - 1; d >= 0; d--) {
        const int k = back ? d : at[d];

        order_add(&o, in->dims[k], back ? y[k] : x[k], back ? x[k] : y[k]);
    }
    if (o.ndim == 0)
        order_add(&o, 2, 1, 1);
    for (int d = 0; d < o.ndim; d++)
        o.by[d] = index_divisor_of(o.dims[d]);
    return o;
}

static err_code_t move(const op_t *op, const op_args_t *args, bool back,
                       err_t *err)
{
    permute_work w = {};

    w.o = order_of(op, back);
    w.count = op_desc_elems(&op->config.in);
    w.from = (const float *)(back ? args->dy : args->x);
    w.to = (float *)(back ? args->dx : args->y);
    while (w.other < w.o.ndim && w.o.from[w.other] != 1)
        w.other++;
    if (w.other == 0) {
        each_start<4>(permute_copy{w}, w.count,
                      w.o.dims[0] % 4 == 0 && pack_aligned(w.from, w.to),
                      cuda_stream(args));
        return cuda_started(op, err);
    }
    w.tiles = index_divisor_of((w.o.dims[0] + TILE - 1) / TILE);
    w.other_tiles = index_divisor_of((w.o.dims[w.other] + TILE - 1) / TILE);
    w.all_tiles = w.count / w.o.dims[0] / w.o.dims[w.other] * w.tiles.by *
                  w.other_tiles.by;
    LAUNCH(permute_tiles, each_blocks(w.all_tiles, 1), dim3(TILE, TILE_ROWS), 0,
           cuda_stream(args), w);
    return cuda_started(op, err);
}

static err_code_t permute_forward(op_t *op, const op_args_t *args, err_t *err)
{
    return move(op, args, false, err);
}

static err_code_t permute_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return op->config.need_dx ? move(op, args, true, err) : ERR_OK;
}

extern "C" const op_kernel_t cuda_permute_kernel = {
    permute_open, NULL, permute_forward, permute_backward};
