/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Norms, and clipping by them or by value. Squares are summed in float64 over
 * blocks of fixed size, and the blocks' sums along a binary tree over block
 * numbers, so that the bits depend on the numbers alone, not on who holds which
 * of them.
 */
#include <math.h>

#include "optim/optim_priv.h"

#define LANES 8       /* independent sums, so that the loop can be vectorised */
#define CLIP_EPS 1e-6 /* as torch.nn.utils.clip_grad_norm_ */

double optim_block_squares(const float *x, size_t elems)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + LANES <= elems; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < elems; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Adding a block is counting up in binary. */
void optim_sum_add(optim_sum_t *sum, double block)
{
    double node = block;
    int k = 0;

    for (; (sum->blocks >> k) & 1; k++)
        node = sum->levels[k] + node;
    sum->levels[k] = node;
    sum->blocks++;
}

double optim_sum_total(const optim_sum_t *sum)
{
    const int levels = sizeof sum->levels / sizeof sum->levels[0];
    double total = 0;

    for (int k = 0; k < levels; k++)
        if ((sum->blocks >> k) & 1)
            total = sum->levels[k] + total;
    return total;
}

double optim_norm(const float *grads, size_t elems)
{
    optim_sum_t sum = {0};

    for (size_t i = 0; i < elems; i += OPTIM_BLOCK) {
        size_t left = elems - i;

        optim_sum_add(&sum, optim_block_squares(grads + i, left < OPTIM_BLOCK
                                                               ? left
                                                               : OPTIM_BLOCK));
    }
    return sqrt(optim_sum_total(&sum));
}

double optim_clip(float *grads, size_t elems, double limit)
{
    const double norm = optim_norm(grads, elems);
    const float factor = (float)(limit / (norm + CLIP_EPS));

    if (!(limit > 0) || factor >= 1)
        return norm;
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        grads[i] *= factor;
    return norm;
}

void optim_clip_value(float *grads, size_t elems, double limit)
{
    const float most = (float)limit;

    if (!(limit > 0))
        return;
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float g = grads[i];

        g = g > most ? most : g;
        grads[i] = g < -most ? -most : g;
    }
}
