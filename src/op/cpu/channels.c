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

/* Set to 0 where [by] is below 0: NaN passes. */
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

CPU_CLONES
void cpu_channels_sum(const float *x, cpu_run_t run, float *sum)
{
    wide_t total[4] = {zero, zero, zero, zero}, v;
    int64_t i = 0;

    for (; run.width == CPU_WIDE && i + 4 <= run.vectors; i += 4)
        for (int k = 0; k < 4; k++)
            total[k] += *(const wide_t *)(x + (i + k) * run.stride);
    for (; i < run.vectors; i++) {
        lanes_load(&v, x + i * run.stride, run.width, &zero);
        total[0] += v;
    }
    if (run.rest > 0) {
        lanes_load(&v, x + run.vectors * run.stride, run.rest, &zero);
        total[1] += v;
    }
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

CPU_CLONES
void cpu_channels_moments(const float *x, cpu_run_t run, const float *centre,
                          float *first, float *second)
{
    const wide_t c = *(const wide_t *)centre;
    wide_t a[2] = {zero, zero}, b[2] = {zero, zero};
    int64_t i = 0;

    for (; run.width == CPU_WIDE && i + 2 <= run.vectors; i += 2)
        for (int k = 0; k < 2; k++)
            moments_of(x + (i + k) * run.stride, CPU_WIDE, &c, &a[k], &b[k]);
    for (; i < run.vectors; i++)
        moments_of(x + i * run.stride, run.width, &c, &a[0], &b[0]);
    if (run.rest > 0)
        moments_of(x + i * run.stride, run.rest, &c, &a[1], &b[1]);
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

CPU_INLINE void products_of(const float *x, const float *y, const float *dy,
                            int width, bool relu, const wide_t *mean,
                            wide_t *plain, wide_t *product)
{
    wide_t g, v;

    gradient_load(&g, y, dy, width, relu);
    lanes_load(&v, x, width, mean);
    *plain += g;
    *product += g * (v - *mean);
}

CPU_INLINE void products_run(const float *x, const float *y, const float *dy,
                             cpu_run_t run, bool relu, const wide_t *mean,
                             wide_t *plain, wide_t *product)
{
    int64_t i = 0;

    for (; run.width == CPU_WIDE && i + 2 <= run.vectors; i += 2)
        for (int k = 0; k < 2; k++) {
            const int64_t at = (i + k) * run.stride;

            products_of(x + at, y + at, dy + at, CPU_WIDE, relu, mean,
                        &plain[k], &product[k]);
        }
    for (; i <= run.vectors; i++) {
        const int64_t at = i * run.stride;
        const int width = i < run.vectors ? run.width : run.rest;

        if (width > 0)
            products_of(x + at, y + at, dy + at, width, relu, mean, &plain[0],
                        &product[0]);
    }
}

CPU_CLONES
void cpu_channels_products(const float *x, const float *y, const float *dy,
                           cpu_run_t run, const float *mean, float *plain,
                           float *product)
{
    const wide_t m = *(const wide_t *)mean;
    wide_t a[2] = {zero, zero}, b[2] = {zero, zero};

    if (y != NULL)
        products_run(x, y, dy, run, true, &m, a, b);
    else
        products_run(x, dy, dy, run, false, &m, a, b);
    a[0] += a[1];
    b[0] += b[1];
    memcpy(plain, a, sizeof(wide_t));
    memcpy(product, b, sizeof(wide_t));
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

CPU_INLINE void apply_run(const float *x, const float *other, cpu_run_t run,
                          bool add, bool relu, const cpu_lanes_t *lanes,
                          float *y)
{
    int64_t i = 0;

    for (; run.width == CPU_WIDE && i < run.vectors; i++) {
        const int64_t at = i * run.stride;

        apply_of(x + at, other + at, CPU_WIDE, add, relu, lanes, y + at);
    }
    for (; i <= run.vectors; i++) {
        const int64_t at = i * run.stride;
        const int width = i < run.vectors ? run.width : run.rest;

        if (width > 0)
            apply_of(x + at, other + at, width, add, relu, lanes, y + at);
    }
}

CPU_CLONES
void cpu_channels_apply(const float *x, const float *other, bool relu,
                        cpu_run_t run, const cpu_lanes_t *lanes, float *y)
{
    const cpu_lanes_t own = *lanes; /* y cannot lie over it */

    if (other == NULL && !relu)
        apply_run(x, x, run, false, false, &own, y);
    else if (other == NULL)
        apply_run(x, x, run, false, true, &own, y);
    else if (!relu)
        apply_run(x, other, run, true, false, &own, y);
    else
        apply_run(x, other, run, true, true, &own, y);
}

CPU_INLINE void pull_of(const float *x, const float *y, const float *dy,
                        int width, bool relu, const cpu_lanes_t *lanes,
                        float *dx, float *dother)
{
    wide_t g, v;

    gradient_load(&g, y, dy, width, relu);
    lanes_load(&v, x, width, &zero);
    if (dother != NULL)
        lanes_store(dother, &g, width);
    if (dx == NULL)
        return;
    v -= *(const wide_t *)lanes->mean;
    v = *(const wide_t *)lanes->factor * (g - *(const wide_t *)lanes->plain -
                                          v * *(const wide_t *)lanes->product);
    lanes_store(dx, &v, width);
}

CPU_INLINE void pull_run(const float *x, const float *y, const float *dy,
                         cpu_run_t run, bool relu, const cpu_lanes_t *lanes,
                         float *dx, float *dother)
{
    int64_t i = 0;

    for (; run.width == CPU_WIDE && i < run.vectors; i++) {
        const int64_t at = i * run.stride;

        pull_of(x + at, y + at, dy + at, CPU_WIDE, relu, lanes,
                dx != NULL ? dx + at : NULL,
                dother != NULL ? dother + at : NULL);
    }
    for (; i <= run.vectors; i++) {
        const int64_t at = i * run.stride;
        const int width = i < run.vectors ? run.width : run.rest;

        if (width > 0)
            pull_of(x + at, y + at, dy + at, width, relu, lanes,
                    dx != NULL ? dx + at : NULL,
                    dother != NULL ? dother + at : NULL);
    }
}

CPU_CLONES
void cpu_channels_pull(const float *x, const float *y, const float *dy,
                       cpu_run_t run, const cpu_lanes_t *lanes, float *dx,
                       float *dother)
{
    const cpu_lanes_t own = *lanes;

    if (y == NULL && dother == NULL)
        pull_run(x, dy, dy, run, false, &own, dx, NULL);
    else if (y == NULL)
        pull_run(x, dy, dy, run, false, &own, dx, dother);
    else if (dother == NULL)
        pull_run(x, y, dy, run, true, &own, dx, NULL);
    else
        pull_run(x, y, dy, run, true, &own, dx, dother);
}
