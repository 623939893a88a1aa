/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* peak: the rates of this machine that bound a training step, measured by the
 * same threads in the same run. */
#ifndef CDDP_CMD_BENCH_PEAK_H
#define CDDP_CMD_BENCH_PEAK_H

#include <stdbool.h>

#include "base/err.h"

typedef struct bench_peak {
    double flops_s; /* of a product of large matrices */
    double bytes_s; /* of a sum of large vectors: two read, one written */
} bench_peak_t;

/* Measure with [threads] threads, the product with factors in bfloat16 if
 * [bf16]; takes about a second and 200 MB. Local. */
err_code_t bench_peak_measure(int threads, bool bf16, bench_peak_t *out,
                              err_t *err);

#endif
