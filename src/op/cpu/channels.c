/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Bodies are inlined with constants for what differs (full vectors or not, relu
 * or not), so that the common case is a loop over whole vectors. Vectors are
 * handed on by address: as values they would depend on the target's ABI.
 */
#include "op/cpu/channels.h"

#include <string.h>

#include "op/cpu/math.h"
#include "op/cpu/vector.h"

typedef float wide_t __attribute__((vector_size(4 * CPU_WIDE), aligned(4)));
typedef int32_t mask_t __attribute__((vector_size(4 * CPU_WIDE), aligned(4)));

/* [width] lanes from [from], the others from [fill]. */
CPU_INLINE void lanes_load(wide_t *out, const float *from, int width,
                           const wide_t *fill)
{
    if (width == CPU_WIDE) {
        *out = *(const wide_t *)from;
        return;
    }
    *out = *fill;
    memcpy(out, from, (size_t)width * sizeof(float));
}

CPU_INLINE void lanes_store(float *to, const wide_t *from, int width)
{
    if (width == CPU_WIDE)
        *(wide_t *)to = *from;
    else
        memcpy(to, from, (size_t)width * sizeof(float));
}

static const wide_t zero;

/* Set to 0 what is below 0: NaN passes. */
CPU_INLINE void lanes_relu(wide_t *v)
{
    const mask_t below = *v < zero;
    mask_t bits;

    memcpy(&bits, v, sizeof bits);
    bits &= ~below;
    memcpy(v, &bits, sizeof bits);
}

/* Keep where [y] is above 0. */
CPU_INLINE void lanes_pass(wide_t *v, const wide_t *y)
{
    const mask_t above = *y > zero;
    mask_t bits;

    memcpy(&bits, v, sizeof bits);
    bits &= above;
    memcpy(v, &bits, sizeof bits);
}

/* ---- sums ---------------------------------------------------------------- */

CPU_INLINE void sum_run(const float *x, const cpu_run_t *run, wide_t *total)
{
    int64_t i = 0;
    wide_t v;

    for (; run->width == CPU_WIDE && i + 4 <= run->vectors; i += 4)
        for (int k = 0; k < 4; k++)
            total[k] += *(const wide_t *)(x + (i + k) * run->stride);
    for (; i < run->vectors; i++) {
        lanes_load(&v, x + i * run->stride, run->width, &zero);
        total[0] += v;
    }
    if (run->rest > 0) {
        lanes_load(&v, x + i * run->stride, run->rest, &zero);
        total[1] += v;
    }
}

CPU_CLONES
void cpu_channels_sum(const float *x, cpu_run_t run, float *sum)
{
    wide_t total[4] = {zero, zero, zero, zero};

    for (int64_t n = 0; n < run.samples; n++)
        sum_run(x + n * run.apart, &run, total);
    total[0] = (total[0] + total[1]) + (total[2] + total[3]);
    memcpy(sum, total, sizeof(wide_t));
}

CPU_INLINE void moments_of(const float *x, int width, const wide_t *centre,
                           wide_t *first, wide_t *second)
{
    wide_t d;

    lanes_load(&d, x, width, centre);
    d -= *centre;
    *first += d;
    *second += d * d;
}

CPU_INLINE void moments_run(const float *x, const cpu_run_t *run,
                            const wide_t *centre, wide_t *first, wide_t *second)
{
    int64_t i = 0;

    for (; run->width == CPU_WIDE && i + 2 <= run->vectors; i += 2)
        for (int k = 0; k < 2; k++)
            moments_of(x + (i + k) * run->stride, CPU_WIDE, centre, &first[k],
                       &second[k]);
    for (; i < run->vectors; i++)
        moments_of(x + i * run->stride, run->width, centre, &first[0],
                   &second[0]);
    if (run->rest > 0)
        moments_of(x + i * run->stride, run->rest, centre, &first[1],
                   &second[1]);
}

CPU_CLONES
void cpu_channels_moments(const float *x, cpu_run_t run, const float *centre,
                          float *first, float *second)
{
    const wide_t c = *(const wide_t *)centre;
    wide_t a[2] = {zero, zero}, b[2] = {zero, zero};

    for (int64_t n = 0; n < run.samples; n++)
        moments_run(x + n * run.apart, &run, &c, a, b);
    a[0] += a[1];
    b[0] += b[1];
    memcpy(first, a, sizeof(wide_t));
    memcpy(second, b, sizeof(wide_t));
}

/* What flows back through the op at one vector. */
CPU_INLINE void gradient_load(wide_t *g, const float *y, const float *dy,
                              int width, bool relu)
{
    wide_t out;

    lanes_load(g, dy, width, &zero);
    if (!relu)
        return;
    lanes_load(&out, y, width, &zero);
    lanes_pass(g, &out);
}

/* Sums of backward, as they grow. */
typedef struct products {
    wide_t plain[2], product[2];
} products_t;

CPU_INLINE void products_of(const float *x, const float *y, const float *dy,
                            int width, bool relu, const wide_t *mean,
                            wide_t *plain, wide_t *product, float *dother)
{
    wide_t g, v;

    gradient_load(&g, y, dy, width, relu);
    lanes_load(&v, x, width, mean);
    *plain += g;
    *product += g * (v - *mean);
    if (dother != NULL)
        lanes_store(dother, &g, width);
}

CPU_INLINE void products_run(const float *x, const float *y, const float *dy,
                             const cpu_run_t *run, bool relu,
                             const wide_t *mean, products_t *sums,
                             float *dother)
{
    int64_t i = 0;

    for (; run->width == CPU_WIDE && i + 2 <= run->vectors; i += 2)
        for (int k = 0; k < 2; k++) {
            const int64_t at = (i + k) * run->stride;

            products_of(x + at, y + at, dy + at, CPU_WIDE, relu, mean,
                        &sums->plain[k], &sums->product[k],
                        dother == NULL ? NULL : dother + at);
        }
    for (; i <= run->vectors; i++) {
        const int64_t at = i * run->stride;
        const int width = i < run->vectors ? run->width : run->rest;

        if (width > 0)
            products_of(x + at, y + at, dy + at, width, relu, mean,
                        &sums->plain[0], &sums->product[0],
                        dother == NULL ? NULL : dother + at);
    }
}

CPU_CLONES
void cpu_channels_products(const float *x, const float *y, const float *dy,
                           cpu_run_t run, const float *mean, float *plain,
                           float *product, float *dother)
{
    const wide_t m = *(const wide_t *)mean;
    products_t sums = {{zero, zero}, {zero, zero}};

    for (int64_t n = 0; n < run.samples; n++) {
        const int64_t at = n * run.apart;

        if (y != NULL && dother != NULL)
            products_run(x + at, y + at, dy + at, &run, true, &m, &sums,
                         dother + at);
        else if (y != NULL)
            products_run(x + at, y + at, dy + at, &run, true, &m, &sums, NULL);
        else
            products_run(x + at, dy + at, dy + at, &run, false, &m, &sums,
                         dother != NULL ? dother + at : NULL);
    }
    sums.plain[0] += sums.plain[1];
    sums.product[0] += sums.product[1];
    memcpy(plain, sums.plain, sizeof(wide_t));
    memcpy(product, sums.product, sizeof(wide_t));
}

/* ---- elements ------------------------------------------------------------ */

CPU_INLINE void apply_of(const float *x, const float *other, int width,
                         bool add, bool relu, const cpu_lanes_t *lanes,
                         float *y)
{
    wide_t v, o;

    lanes_load(&v, x, width, &zero);
    v = (v - *(const wide_t *)lanes->mean) * *(const wide_t *)lanes->factor +
        *(const wide_t *)lanes->shift;
    if (add) {
        lanes_load(&o, other, width, &zero);
        v += o;
    }
    if (relu)
        lanes_relu(&v);
    lanes_store(y, &v, width);
}

CPU_INLINE void apply_run(const float *x, const float *other,
                          const cpu_run_t *run, bool add, bool relu,
                          const cpu_lanes_t *lanes, float *y)
{
    int64_t i = 0;

    for (; run->width == CPU_WIDE && i < run->vectors; i++) {
        const int64_t at = i * run->stride;

        apply_of(x + at, other + at, CPU_WIDE, add, relu, lanes, y + at);
    }
    for (; i <= run->vectors; i++) {
        const int64_t at = i * run->stride;
        const int width = i < run->vectors ? run->width : run->rest;

        if (width > 0)
            apply_of(x + at, other + at, width, add, relu, lanes, y + at);
    }
}

CPU_CLONES
void cpu_channels_apply(const float *x, const float *other, bool relu,
                        cpu_run_t run, const cpu_lanes_t *lanes, float *y)
{
    const cpu_lanes_t own = *lanes; /* y cannot lie over it */
    const bool add = other != NULL;

    for (int64_t n = 0; n < run.samples; n++) {
        const float *from = x + n * run.apart;
        const float *beside = add ? other + n * run.apart : from;
        float *to = y + n * run.apart;

        if (!add && !relu)
            apply_run(from, beside, &run, false, false, &own, to);
        else if (!add)
            apply_run(from, beside, &run, false, true, &own, to);
        else if (!relu)
            apply_run(from, beside, &run, true, false, &own, to);
        else
            apply_run(from, beside, &run, true, true, &own, to);
    }
}

CPU_INLINE void pull_of(const float *x, const float *y, const float *dy,
                        int width, bool relu, const cpu_lanes_t *lanes,
                        float *dx)
{
    wide_t g, v;

    gradient_load(&g, y, dy, width, relu);
    lanes_load(&v, x, width, &zero);
    v -= *(const wide_t *)lanes->mean;
    v = *(const wide_t *)lanes->factor * (g - *(const wide_t *)lanes->plain -
                                          v * *(const wide_t *)lanes->product);
    lanes_store(dx, &v, width);
}

CPU_INLINE void pull_run(const float *x, const float *y, const float *dy,
                         const cpu_run_t *run, bool relu,
                         const cpu_lanes_t *lanes, float *dx)
{
    int64_t i = 0;

    for (; run->width == CPU_WIDE && i < run->vectors; i++) {
        const int64_t at = i * run->stride;

        pull_of(x + at, y + at, dy + at, CPU_WIDE, relu, lanes, dx + at);
    }
    for (; i <= run->vectors; i++) {
        const int64_t at = i * run->stride;
        const int width = i < run->vectors ? run->width : run->rest;

        if (width > 0)
            pull_of(x + at, y + at, dy + at, width, relu, lanes, dx + at);
    }
}

CPU_CLONES
void cpu_channels_pull(const float *x, const float *y, const float *dy,
                       cpu_run_t run, const cpu_lanes_t *lanes, float *dx)
{
    const cpu_lanes_t own = *lanes;

    for (int64_t n = 0; n < run.samples; n++) {
        const int64_t at = n * run.apart;

        if (y != NULL)
            pull_run(x + at, y + at, dy + at, &run, true, &own, dx + at);
        else
            pull_run(x + at, dy + at, dy + at, &run, false, &own, dx + at);
    }
}
