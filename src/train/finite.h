/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Are all [count] numbers finite? As fast as memory is read. */
#ifndef CDDP_TRAIN_FINITE_H
#define CDDP_TRAIN_FINITE_H

#include <stdbool.h>
#include <stdint.h>

bool train_all_finite(const float *data, int64_t count);

#endif
