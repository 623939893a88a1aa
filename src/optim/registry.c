/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The places that were built in. */
#include "optim/place_ops.h"

const optim_place_ops_t *const optim_registry[] = {
    &optim_cpu_place,
    NULL,
};
