/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The inputs of the all-reduces that benchmarks check, and their sums. */
#ifndef CDDP_CMD_BENCH_VALUE_H
#define CDDP_CMD_BENCH_VALUE_H

#include <stddef.h>

#include "base/err.h"

/* Element [i] of the input of [rank]: a small whole number, so that every order
 * of summing gives the same bits. */
float bench_value(int rank, size_t i);
/* Check that [data] of [rank] is the sum of the inputs of [size] ranks.
 * ERR_DATA names the first element that is not. */
err_code_t bench_value_check(const float *data, size_t count, int rank,
                             int size, err_t *err);

#endif
