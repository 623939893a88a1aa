/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Factors of products as op_config_t.compute_type wants them. */
#ifndef CDDP_OP_CUDA_DEVICE_ROUND_CUH
#define CDDP_OP_CUDA_DEVICE_ROUND_CUH

#include <cuda_bf16.h>

#include "op/cuda/launch.h"
#include "op/op_config.h"

/* [x], rounded to the nearest number with 7 (OP_BFLOAT16) or 10 (OP_TF32) bits
 * of mantissa, ties to even. NaN and infinity stay what they are. */
static __device__ __forceinline__ float round_factor(op_type_t type, float x)
{
    if (type == OP_BFLOAT16)
        return __bfloat162float(__float2bfloat16_rn(x));
    if (type == OP_TF32 && fabsf(x) < INFINITY) {
        const unsigned bits = __float_as_uint(x);

        return __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
    }
    return x;
}

#endif
