/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Activations as loops over elements: y = f(x) and dx = dy f'. Whether elements
 * are computed at once or in pieces changes no bit. */
#ifndef CDDP_OP_CPU_VECTOR_ACTIVATIONS_H
#define CDDP_OP_CPU_VECTOR_ACTIVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op_kind.h"

typedef struct cpu_activation {
    /* Of whole blocks of elements. */
    void (*forward)(const float *x, float alpha, float *to, int64_t count);
    void (*backward)(const float *of, const float *dy, float alpha, float *to,
                     int64_t count);
    bool of_y;  /* backward's first tensor is y, else x */
    bool fills; /* f(0) is not 0 */
} cpu_activation_t;

/* That of an activation (not relu, which is simpler). */
const cpu_activation_t *cpu_activation_of(op_kind_t kind);

/* [to] may be [x]; or [of], or [dy]. */
void cpu_activation_forward(const cpu_activation_t *activation, const float *x,
                            float alpha, float *to, int64_t count);
void cpu_activation_backward(const cpu_activation_t *activation,
                             const float *of, const float *dy, float alpha,
                             float *to, int64_t count);

#endif
