/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench step --record: writes a file with which another program can repeat
 * the steps and compare its losses. */
#ifndef CDDP_CMD_BENCH_RECORD_H
#define CDDP_CMD_BENCH_RECORD_H

#include "train/bench.h"

typedef struct bench_record {
    const train_bench_info_t *info;
    /* arenas, with the layout of those in [info] */
    const float *params, *buffers;
    const double *losses; /* [loss_count] */
    int loss_count;
} bench_record_t;

/* Write parameters, buffers, inputs and targets, each tensor under its name,
 * and `losses` (float64) to the safetensors file [path]. ERR_IO; ERR_CONFIG:
 * two of them have one name. */
err_code_t bench_record_write(const char *path, const bench_record_t *record,
                              err_t *err);

#endif
