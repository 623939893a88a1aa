/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/finite.h"

#include <float.h>
#include <math.h>

#include "base/clones.h"

#define FINITE_BLOCK 4096 /* elements between checks for an early return */

/* A comparison with a nan is false. */
BASE_CLONES static bool finite_block(const float *data, int64_t count)
{
    unsigned bad = 0;

#pragma omp simd reduction(| : bad)
    for (int64_t i = 0; i < count; i++)
        bad |= !(fabsf(data[i]) <= FLT_MAX);
    return bad == 0;
}

bool train_all_finite(const float *data, int64_t count)
{
    bool finite = true;

    for (int64_t at = 0; at < count && finite; at += FINITE_BLOCK)
        finite = finite_block(
            data + at, count - at < FINITE_BLOCK ? count - at : FINITE_BLOCK);
    return finite;
}
