/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench step --record: what another program needs to make the same steps
 * and to check that it did. */
#ifndef CDDP_CMD_BENCH_RECORD_H
#define CDDP_CMD_BENCH_RECORD_H

#include "train/bench.h"

/* Write parameters and buffers by name, `input`, `target`, and `losses`
 * (float64 [loss_count]) to the safetensors file [path]. [params] and [buffers]
 * are arenas laid out as those of [info]. ERR_IO. */
err_code_t bench_record_write(const char *path, const train_bench_info_t *info,
                              const float *params, const float *buffers,
                              const double *losses, int loss_count, err_t *err);

#endif
