/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Return whether all [count] numbers are finite. Runs at the speed of reading
 * memory. */
#ifndef CDDP_TRAIN_FINITE_H
#define CDDP_TRAIN_FINITE_H

#include <stdbool.h>
#include <stdint.h>

bool train_all_finite(const float *data, int64_t count);

#endif
