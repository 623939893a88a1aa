/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Norms, and clipping by norm or by value. Squares are summed in float64 over
 * blocks of fixed size. The sums of blocks are added along a binary tree over
 * the numbers of the blocks: so the bits do not depend on which thread or rank
 * has which block.
 */
#include <math.h>

#include "optim/cpu/cpu.h"
#include "simd/team.h"
#include "simd/vector.h"

#define LANES 8        /* number of partial sums, to vectorise the loop */
#define AHEAD 512      /* number of elements to prefetch ahead */
#define CHUNKS_MAX 256 /* maximum number of chunks that threads share */

SIMD_CLONES double optim_cpu_block_squares(const float *x, size_t elems)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + LANES <= elems; i += LANES) {
        /* Also beyond the page; see adam.c. */
        __builtin_prefetch(x + i + AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    }
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < elems; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Works like counting up in binary: two subtrees of equal size are joined at
 * once. */
void optim_cpu_sum_add(optim_cpu_sum_t *sum, double block)
{
    double node = block;
    int k = 0;

    for (; (sum->blocks >> k) & 1; k++)
        node = sum->levels[k] + node;
    sum->levels[k] = node;
    sum->blocks++;
}

double optim_cpu_sum_total(const optim_cpu_sum_t *sum)
{
    const int levels = sizeof sum->levels / sizeof sum->levels[0];
    double total = 0;

    for (int k = 0; k < levels; k++)
        if ((sum->blocks >> k) & 1)
            total = sum->levels[k] + total;
    return total;
}

/* ---- passes that threads share ------------------------------------------- */

/* One pass over an arena, in [chunks] chunks of [pass->chunk] elements. */
typedef struct pass {
    const float *in;
    float *out;
    size_t elems, chunk;
    float factor, most;
    double *blocks; /* sums of squares of blocks; NULL: not wanted */
    double nodes[CHUNKS_MAX];
} pass_t;

/* Choose the size of a chunk: a power of two times the size of a block, so
 * that each chunk is a subtree of the tree of blocks. Returns the number of
 * chunks. */
static int64_t pass_cut(pass_t *pass)
{
    pass->chunk = OPTIM_BLOCK * 16;
    while (pass->elems > pass->chunk * CHUNKS_MAX)
        pass->chunk *= 2;
    return (int64_t)((pass->elems + pass->chunk - 1) / pass->chunk);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void squares_body(void *context, int64_t first, int64_t last)
{
    pass_t *pass = context;

    for (int64_t c = first; c < last; c++) {
        const size_t from = (size_t)c * pass->chunk;
        const size_t to = least(from + pass->chunk, pass->elems);
        optim_cpu_sum_t sum = {0};

        for (size_t i = from; i < to; i += OPTIM_BLOCK)
            optim_cpu_sum_add(
                &sum, optim_cpu_block_squares(pass->in + i,
                                              least(to - i, OPTIM_BLOCK)));
        pass->nodes[c] = optim_cpu_sum_total(&sum);
    }
}

err_code_t optim_cpu_norm(optim_place_t *place, const float *grads,
                          size_t elems, double *norm, dev_stream_t *stream,
                          err_t *err)
{
    pass_t pass = {.in = grads, .elems = elems};
    const int64_t chunks = pass_cut(&pass);
    optim_cpu_sum_t sum = {0};

    (void)stream;
    (void)err;
    simd_team_run(((optim_cpu_t *)place)->threads, chunks, 1, squares_body,
                  &pass);
    for (int64_t c = 0; c < chunks; c++)
        optim_cpu_sum_add(&sum, pass.nodes[c]);
    *norm = sqrt(optim_cpu_sum_total(&sum));
    return ERR_OK;
}

static void blocks_body(void *context, int64_t first, int64_t last)
{
    const pass_t *pass = context;
    const size_t to = least((size_t)last * pass->chunk, pass->elems);

    for (size_t i = (size_t)first * pass->chunk; i < to; i += OPTIM_BLOCK)
        pass->blocks[i / OPTIM_BLOCK] =
            optim_cpu_block_squares(pass->in + i, least(to - i, OPTIM_BLOCK));
}

err_code_t optim_cpu_norm_part(optim_place_t *place, const float *grads,
                               view_range_t range, double *blocks,
                               dev_stream_t *stream, err_t *err)
{
    pass_t pass = {.in = grads + range.first,
                   .elems = range.count,
                   .blocks = blocks + range.first / OPTIM_BLOCK};

    (void)stream;
    (void)err;
    simd_team_run(((optim_cpu_t *)place)->threads, pass_cut(&pass), 1,
                  blocks_body, &pass);
    return ERR_OK;
}

err_code_t optim_cpu_norm_whole(optim_place_t *place, const double *blocks,
                                size_t count, double *norm,
                                dev_stream_t *stream, err_t *err)
{
    optim_cpu_sum_t sum = {0};

    (void)place;
    (void)stream;
    (void)err;
    for (size_t i = 0; i < count; i++)
        optim_cpu_sum_add(&sum, blocks[i]);
    *norm = sqrt(optim_cpu_sum_total(&sum));
    return ERR_OK;
}

SIMD_CLONES static void scale(float *grads, size_t elems, float factor)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        grads[i] *= factor;
}

SIMD_CLONES static void clamp(float *grads, size_t elems, float most)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        grads[i] = optim_clamp(grads[i], most);
}

static void scale_body(void *context, int64_t first, int64_t last)
{
    const pass_t *pass = context;
    const size_t from = (size_t)first * pass->chunk;
    const size_t to = least((size_t)last * pass->chunk, pass->elems);

    scale(pass->out + from, to - from, pass->factor);
}

static void clamp_body(void *context, int64_t first, int64_t last)
{
    const pass_t *pass = context;
    const size_t from = (size_t)first * pass->chunk;
    const size_t to = least((size_t)last * pass->chunk, pass->elems);

    clamp(pass->out + from, to - from, pass->most);
}

void optim_cpu_clip(float *grads, size_t elems, float factor, float most,
                    int threads)
{
    pass_t pass = {
        .out = grads, .elems = elems, .factor = factor, .most = most};
    const int64_t chunks = pass_cut(&pass);

    if (factor != 1)
        simd_team_run(threads, chunks, 1, scale_body, &pass);
    if (most > 0)
        simd_team_run(threads, chunks, 1, clamp_body, &pass);
}

err_code_t optim_cpu_scale(optim_place_t *place, float *data, size_t elems,
                           float factor, dev_stream_t *stream, err_t *err)
{
    (void)stream;
    (void)err;
    optim_cpu_clip(data, elems, factor, 0, ((optim_cpu_t *)place)->threads);
    return ERR_OK;
}
