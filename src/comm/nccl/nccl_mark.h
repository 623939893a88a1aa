/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How far a stream has come. */
#ifndef CDDP_COMM_NCCL_NCCL_MARK_H
#define CDDP_COMM_NCCL_NCCL_MARK_H

#include <stdint.h>

#include "dev/dev_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Let the device add 1 to [mark], pinned memory of the host, when [stream]
 * comes to it. */
err_code_t nccl_mark(uint64_t *mark, cudaStream_t stream, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
