/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_step.h"

#include "op/op_ops.h"

void op_fold_host(const op_fold_t *fold)
{
    if (!op_fold_wanted(fold))
        return;
    for (size_t c = 0; c < fold->channels; c++)
        op_fold_channel(fold, c);
}

err_code_t op_fold(const op_backend_ops_t *backend, const op_fold_t *fold,
                   dev_stream_t *stream, err_t *err)
{
    if (backend != NULL && backend->fold != NULL)
        return backend->fold(fold, stream, err);
    op_fold_host(fold);
    return ERR_OK;
}
