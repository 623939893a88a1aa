/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The op backends that were built in. */
#include "op/op_ops.h"

const op_backend_ops_t *const op_registry[] = {
    &op_ref_backend,
    &op_cpu_backend,
    NULL,
};
