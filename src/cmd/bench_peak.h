/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* peak: measures the rates of this machine that bound a training step, with the
 * threads that run the step. */
#ifndef CDDP_CMD_BENCH_PEAK_H
#define CDDP_CMD_BENCH_PEAK_H

#include <stdbool.h>

#include "base/err.h"

typedef struct bench_peak {
    double flops_s; /* FLOP/s of a product of large matrices */
    /* bytes/s of a sum of large vectors: two are read, one is written */
    double bytes_s;
} bench_peak_t;

/* Measure with [threads] threads; if [bf16], the factors of the matrix product
 * are rounded to bfloat16. Takes about one second and 200 MB. Local. */
err_code_t bench_peak_measure(int threads, bool bf16, bench_peak_t *out,
                              err_t *err);

#endif
