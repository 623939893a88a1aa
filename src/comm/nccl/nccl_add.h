/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Sums of two arrays in a GPU's memory, with the bits of comm_reduce. */
#ifndef CDDP_COMM_NCCL_NCCL_ADD_H
#define CDDP_COMM_NCCL_NCCL_ADD_H

#include "comm/comm_collective.h"
#include "dev/dev_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueue on [stream] that the device adds [count] elements at [from] to those
 * at [to]. The type is not a 16-bit float (comm_type_rounds). */
err_code_t nccl_add(void *to, const void *from, size_t count, comm_type_t type,
                    cudaStream_t stream, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
