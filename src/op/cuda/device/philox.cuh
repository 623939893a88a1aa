/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The random numbers of base/rng.h, with the same bits. */
#ifndef CDDP_OP_CUDA_DEVICE_PHILOX_CUH
#define CDDP_OP_CUDA_DEVICE_PHILOX_CUH

#include "base/rng_philox.h"
#include "op/cuda/launch.h"

extern "C" {
#include "base/rng.h"
}

/* rng_philox of one block. */
static __device__ __forceinline__ uint4 philox(uint2 key, uint4 x)
{
    for (int round = 0; round < RNG_ROUNDS; round++) {
        const uint64_t first = (uint64_t)RNG_FIRST * x.x;
        const uint64_t third = (uint64_t)RNG_THIRD * x.z;

        x = make_uint4((uint32_t)(third >> 32) ^ x.y ^ key.x, (uint32_t)third,
                       (uint32_t)(first >> 32) ^ x.w ^ key.y, (uint32_t)first);
        key.x += RNG_STEP0;
        key.y += RNG_STEP1;
    }
    return x;
}

#endif
