/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The loops for any CPU, and the choice between them and the native loops. */
#include "op/cpu/vector/channels.h"

#include "base/check.h"
#include "op/cpu/vector/channels_native.h"
#include "simd/math.h"
#include "simd/vector.h"

#define CHANNELS_INLINE SIMD_INLINE
#define CHANNELS_ENTRY SIMD_CLONES static void
#include "op/cpu/vector/channels_loops.inc"

const cpu_channels_t *cpu_channels_any(void)
{
    return &channels;
}

static const cpu_channels_t *channels_for(const cpu_run_t *run)
{
    const cpu_channels_t *native = run->bf16 ? cpu_channels_native() : NULL;

    check(run->width > 0 && run->width <= CPU_WIDE, "%d lanes", run->width);
    check(run->rest >= 0 && run->rest < CPU_WIDE, "%d lanes left", run->rest);
    check(run->vectors >= 0 && run->samples >= 0, "a negative count");
    return native != NULL ? native : &channels;
}

void cpu_channels_sum(const void *x, cpu_run_t run, float *sum)
{
    channels_for(&run)->sum(x, run, sum);
}

void cpu_channels_moments(const void *x, cpu_run_t run, const float *centre,
                          float *first, float *second)
{
    channels_for(&run)->moments(x, run, centre, first, second);
}

void cpu_channels_apply(const cpu_tensors_t *tensors, cpu_run_t run,
                        const cpu_lanes_t *lanes, bool relu)
{
    channels_for(&run)->apply(tensors, run, lanes, relu);
}

void cpu_channels_products(const cpu_tensors_t *tensors, cpu_run_t run,
                           const float *mean, float *plain, float *product)
{
    channels_for(&run)->products(tensors, run, mean, plain, product);
}

void cpu_channels_backward(const cpu_tensors_t *tensors, cpu_run_t run,
                           const cpu_lanes_t *lanes)
{
    channels_for(&run)->backward(tensors, run, lanes);
}
