/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums over segments of rows. Up to CPU_NORM_STRETCH elements are summed in
 * SIMD_LANES floats; these sums are added in double.
 */
#include "op/cpu/ops/norm.h"
#include "simd/math.h"
#include "simd/vector.h"

/* Add pairwise, so that few additions wait for each other. */
SIMD_INLINE double norm_sum_lanes(const float *lanes)
{
    double eight[8], four[4];

    _Static_assert(SIMD_LANES == 16, "8 and 8");
    for (int k = 0; k < 8; k++)
        eight[k] = (double)lanes[k] + (double)lanes[k + 8];
    for (int k = 0; k < 4; k++)
        four[k] = eight[k] + eight[k + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* What g is: x - mean; or dy times the gamma of each element; or dy, which the
 * caller multiplies by a gamma that all elements share. */
typedef enum norm_of { NORM_X, NORM_EACH, NORM_SAME } norm_of_t;

/* Elements of one row. [dy] and [gamma] are unused where g does not depend on
 * them. */
typedef struct norm_segment {
    const float *x, *dy, *gamma;
    int64_t n;
} norm_segment_t;

/* The sums of g and of g * xhat, xhat = (x - mean) * factor. Callers pass a
 * constant [of], for which the compiler specialises the loop. */
SIMD_INLINE cpu_norm_sums_t norm_sums(norm_of_t of, norm_segment_t segment,
                                      cpu_norm_row_t row)
{
    const float *x = segment.x, *dy = segment.dy, *gamma = segment.gamma;
    const float mean = row.mean, factor = row.factor;
    const int64_t n = segment.n;
    float plain[SIMD_LANES] = {0}, product[SIMD_LANES] = {0};
    cpu_norm_sums_t sums;
    int64_t i = 0;

    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
        for (int k = 0; k < SIMD_LANES; k++) {
            float hat = (x[i + k] - mean) * factor;
            float g = of == NORM_X      ? hat
                      : of == NORM_EACH ? dy[i + k] * gamma[i + k]
                                        : dy[i + k];

            plain[k] += g;
            product[k] += g * hat;
        }
    sums.plain = norm_sum_lanes(plain);
    sums.product = norm_sum_lanes(product);
    for (; i < n; i++) {
        float hat = (x[i] - mean) * factor;
        float g = of == NORM_X      ? hat
                  : of == NORM_EACH ? dy[i] * gamma[i]
                                    : dy[i];

        sums.plain += (double)g;
        sums.product += (double)(g * hat);
    }
    return sums;
}

SIMD_CLONES
static cpu_norm_sums_t norm_sums_x(const float *x, int64_t n, float mean)
{
    return norm_sums(NORM_X, (norm_segment_t){.x = x, .n = n},
                     (cpu_norm_row_t){mean, 1});
}

SIMD_CLONES
static cpu_norm_sums_t norm_sums_each(const norm_segment_t *segment,
                                      cpu_norm_row_t row)
{
    return norm_sums(NORM_EACH, *segment, row);
}

SIMD_CLONES
static cpu_norm_sums_t norm_sums_same(const norm_segment_t *segment,
                                      cpu_norm_row_t row)
{
    return norm_sums(NORM_SAME, *segment, row);
}

cpu_norm_sums_t cpu_norm_sums_x(const float *x, int64_t n, float mean)
{
    cpu_norm_sums_t all = {0, 0};

    for (int64_t i = 0; i < n; i += CPU_NORM_STRETCH) {
        cpu_norm_sums_t part =
            norm_sums_x(x + i, cpu_norm_stretch(n - i), mean);

        all.plain += part.plain;
        all.product += part.product;
    }
    return all;
}

cpu_norm_sums_t cpu_norm_sums(const float *x, const float *dy,
                              const float *gamma, int64_t n, cpu_norm_row_t row)
{
    cpu_norm_sums_t all = {0, 0};

    for (int64_t i = 0; i < n; i += CPU_NORM_STRETCH) {
        const norm_segment_t segment = {x + i, dy + i,
                                        gamma == NULL ? NULL : gamma + i,
                                        cpu_norm_stretch(n - i)};
        const cpu_norm_sums_t part = gamma != NULL
                                         ? norm_sums_each(&segment, row)
                                         : norm_sums_same(&segment, row);

        all.plain += part.plain;
        all.product += part.product;
    }
    return all;
}
