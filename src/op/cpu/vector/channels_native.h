/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The functions of channels.h as a table, one table per version. */
#ifndef CDDP_OP_CPU_VECTOR_CHANNELS_NATIVE_H
#define CDDP_OP_CPU_VECTOR_CHANNELS_NATIVE_H

#include "op/cpu/vector/channels.h"

typedef struct cpu_channels {
    void (*sum)(const void *x, cpu_run_t run, float *sum);
    void (*moments)(const void *x, cpu_run_t run, const float *centre,
                    float *first, float *second);
    void (*apply)(const cpu_tensors_t *tensors, cpu_run_t run,
                  const cpu_lanes_t *lanes, bool relu);
    void (*products)(const cpu_tensors_t *tensors, cpu_run_t run,
                     const float *mean, float *plain, float *product);
    void (*backward)(const cpu_tensors_t *tensors, cpu_run_t run,
                     const cpu_lanes_t *lanes);
} cpu_channels_t;

/* The version for any CPU. */
const cpu_channels_t *cpu_channels_any(void);

/* The version for CPUs that round to bfloat16 in one instruction
 * (AVX512_BF16). This instruction turns subnormal numbers into 0. Returns NULL
 * if the CPU or the compiler does not support it. */
const cpu_channels_t *cpu_channels_native(void);

#endif
