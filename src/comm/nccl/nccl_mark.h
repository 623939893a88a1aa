/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Marks by which the host sees how far a stream has come. */
#ifndef CDDP_COMM_NCCL_NCCL_MARK_H
#define CDDP_COMM_NCCL_NCCL_MARK_H

#include <stdint.h>

#include "dev/dev_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueue on [stream] that the device adds 1 to [mark], which is in pinned
 * memory of the host. */
err_code_t nccl_mark(uint64_t *mark, cudaStream_t stream, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
