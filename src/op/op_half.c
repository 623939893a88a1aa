/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_half.h"

#include "base/check.h"
#include "op/op_ops.h"

bool op_half_offered(const op_backend_ops_t *backend)
{
    return backend->half != NULL;
}

err_code_t op_half_round(const op_backend_ops_t *backend, const op_half_t *half,
                         dev_stream_t *stream, err_t *err)
{
    check(backend->half != NULL, "%s rounds on its device", backend->name);
    return backend->half(half, false, stream, err);
}

err_code_t op_half_widen(const op_backend_ops_t *backend, const op_half_t *half,
                         dev_stream_t *stream, err_t *err)
{
    check(backend->half != NULL, "%s converts on its device", backend->name);
    return backend->half(half, true, stream, err);
}
