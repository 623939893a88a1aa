/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dropout: the elements that op_mask.h keeps, times 1 / (1 - rate); backward
 * computes the mask again. A thread treats the four elements of a sample that
 * one block of Philox decides about. Evaluation: y = x.
 */
#include "op/cuda/device/copy.cuh"
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/philox.cuh"

namespace
{

struct dropout_work {
    int64_t count, F;       /* blocks; elements of a sample */
    index_divisor_t blocks; /* of a sample */
    uint32_t layer, threshold;
    float factor;
    bool wide; /* blocks begin at multiples of 16 bytes */
    const op_step_t *step;
    const uint64_t *sample_ids;
    const float *from;
    float *to;
};

} // namespace

/* The key of the masks of this step, as op_mask_make has it. */
static __device__ uint2 dropout_key(const op_step_t *step)
{
    const uint4 mixed =
        philox(make_uint2((uint32_t)step->seed, (uint32_t)(step->seed >> 32)),
               make_uint4((uint32_t)step->epoch, (uint32_t)(step->epoch >> 32),
                          RNG_DROPOUT, 0));

    return make_uint2(mixed.x, mixed.y);
}

static __global__ void __launch_bounds__(EACH_THREADS)
    dropout_run(dropout_work work)
{
    const uint2 key = dropout_key(work.step);

    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        int64_t n = i;
        const int64_t block = index_split(&n, work.blocks);
        const int64_t at = n * work.F + 4 * block, left = work.F - 4 * block;
        const uint64_t id = work.sample_ids[n];
        const uint4 random =
            philox(key, make_uint4((uint32_t)block, work.layer, (uint32_t)id,
                                   (uint32_t)(id >> 32)));
        const uint32_t r[4] = {random.x, random.y, random.z, random.w};
        float v[4] = {};

        if (work.wide)
            pack_load(work.from + at, v);
        for (int k = 0; k < 4; k++) {
            if (!work.wide && k < left)
                v[k] = work.from[at + k];
            v[k] *= r[k] >= work.threshold ? work.factor : 0;
            if (!work.wide && k < left)
                work.to[at + k] = v[k];
        }
        if (work.wide)
            pack_store(work.to + at, v);
    }
}

static err_code_t dropout_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    return ERR_OK;
}

/* The constants that op_mask_make derives from the rate. */
static void dropout_rate(double rate, dropout_work *work)
{
    const double threshold = rate * 4294967296.0;

    work->threshold =
        threshold > 4294967295.0 ? 4294967295u : (uint32_t)(threshold + 0.5);
    work->factor = (float)(1.0 / (1.0 - rate));
}

static err_code_t apply(const op_t *op, const op_args_t *args, const void *from,
                        void *to, err_t *err)
{
    dropout_work work = {};

    work.F = op_desc_sample(&op->config.in);
    work.blocks = index_divisor_of((work.F + 3) / 4);
    work.count = op->config.in.dims[0] * work.blocks.by;
    work.layer = (uint32_t)args->layer;
    dropout_rate(op->config.rate, &work);
    work.wide = work.F % 4 == 0 && pack_aligned(from, to);
    work.step = args->step;
    work.sample_ids = args->sample_ids;
    work.from = (const float *)from;
    work.to = (float *)to;
    /* Several blocks of Philox for a thread, as its key costs one as well. */
    LAUNCH(dropout_run, each_blocks(work.count, 4 * EACH_THREADS), EACH_THREADS,
           0, cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t dropout_forward(op_t *op, const op_args_t *args, err_t *err)
{
    if (op->config.training)
        return apply(op, args, args->x, args->y, err);
    copy_start(args->x, args->y, op_desc_elems(&op->config.in),
               cuda_stream(args));
    return cuda_started(op, err);
}

static err_code_t dropout_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return op->config.need_dx ? apply(op, args, args->dy, args->dx, err)
                              : ERR_OK;
}

extern "C" const op_kernel_t cuda_dropout_kernel = {
    dropout_open, NULL, dropout_forward, dropout_backward};
