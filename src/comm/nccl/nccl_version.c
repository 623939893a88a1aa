/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/comm_ops.h"
#include "comm/nccl/nccl_library.h"

err_code_t comm_nccl_version(int *out, err_t *err)
{
    const nccl_library_t *nccl;
    err_code_t rc = nccl_library_get(&nccl, err);

    if (rc == ERR_OK && nccl->GetVersion(out) != ncclSuccess)
        rc = err_set(err, ERR_UNAVAILABLE, "ncclGetVersion has failed");
    return rc;
}
