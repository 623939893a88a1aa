/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Activations as loops over elements: y = f(x) and dx = dy f'. The bits of a
 * result do not depend on how the elements are divided into calls. */
#ifndef CDDP_OP_CPU_VECTOR_ACTIVATIONS_H
#define CDDP_OP_CPU_VECTOR_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op_kind.h"

typedef struct cpu_activation_loops {
    /* [count] must be a multiple of SIMD_LANES. */
    void (*forward)(const float *x, float alpha, float *to, int64_t count);
    void (*backward)(const float *of, const float *dy, float alpha, float *to,
                     int64_t count);
    bool of_y;  /* backward reads y; false: it reads x */
    bool fills; /* f(0) is not 0 */
} cpu_activation_loops_t;

typedef struct cpu_activation {
    const cpu_activation_loops_t *loops;
    float alpha; /* op_config_t.alpha */
} cpu_activation_t;

/* Any activation except relu, which has simpler loops of its own. */
cpu_activation_t cpu_activation_of(op_kind_t kind, double alpha);

/* For any [count]. forward: [to] may be [x]. backward: [of] is x or y, see
 * of_y; [to] may be [of] or [dy]. */
void cpu_activation_forward(cpu_activation_t activation, const float *x,
                            float *to, int64_t count);
void cpu_activation_backward(cpu_activation_t activation, const float *of,
                             const float *dy, float *to, int64_t count);

#endif
