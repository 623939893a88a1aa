/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* peak: measures the rates of a device that bound a training step; on the CPU
 * with the threads that run the step. */
#ifndef CDDP_CMD_BENCH_PEAK_H
#define CDDP_CMD_BENCH_PEAK_H

#include "op/op.h"

typedef struct bench_peak {
    double flops_s; /* FLOP/s of a product of large matrices */
    /* bytes/s of a sum of large vectors: two are read, one is written */
    double bytes_s;
} bench_peak_t;

typedef struct bench_peak_plan {
    dev_device_t *dev;
    int threads;
    op_type_t compute_type; /* of the matrix product, see op_config_t */
} bench_peak_plan_t;

/* Takes about one second, and 200 MB of the device and of the host. Local. */
err_code_t bench_peak_measure(const bench_peak_plan_t *plan, bench_peak_t *out,
                              err_t *err);

#endif
