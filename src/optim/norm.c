/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The norm of the gradients, and clipping by it. Squares are summed in float64
 * over blocks of fixed size, and the blocks' sums along a binary tree over
 * block numbers, so that the bits depend on the numbers alone, not on who holds
 * which of them.
 */
#include <math.h>

#include "optim/optim.h"

#define BLOCK_ELEMS 4096
#define LANES 8       /* independent sums, so that the loop can be vectorised */
#define LEVELS_MAX 64 /* of the tree */
#define CLIP_EPS 1e-6 /* as torch.nn.utils.clip_grad_norm_ */

static double block_squares(const float *grads, size_t elems)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + LANES <= elems; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            lanes[l] += (double)grads[i + l] * (double)grads[i + l];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (; i < elems; i++)
        sum += (double)grads[i] * (double)grads[i];
    return sum;
}

double optim_norm(const float *grads, size_t elems)
{
    /* levels[k]: the sum of a finished subtree of 2^k blocks, if bit k of
     * [blocks] is set: adding a block is counting up in binary. */
    double levels[LEVELS_MAX] = {0}, sum = 0;
    size_t blocks = 0;

    for (size_t i = 0; i < elems; i += BLOCK_ELEMS, blocks++) {
        size_t left = elems - i;
        double node =
            block_squares(grads + i, left < BLOCK_ELEMS ? left : BLOCK_ELEMS);
        int k = 0;

        for (; (blocks >> k) & 1; k++)
            node = levels[k] + node;
        levels[k] = node;
    }
    for (int k = 0; k < LEVELS_MAX; k++)
        if ((blocks >> k) & 1)
            sum = levels[k] + sum;
    return sqrt(sum);
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
