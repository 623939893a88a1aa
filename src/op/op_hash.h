/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * hash: a hash of numbers in the memory of a device, so that ranks can compare
 * their parameters without copying them. It is the sum, modulo 2^64, of a mixed
 * number for each 32-bit word, which depends on the word and on its index. As
 * whole numbers are added, the order of the sum changes no bit. The mixing
 * function is one to one (that of splitmix64: Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014), so a change of one
 * word always changes the hash.
 */
#ifndef CDDP_OP_OP_HASH_H
#define CDDP_OP_OP_HASH_H

#include <stdint.h>

#include "op/op.h"

#ifdef __CUDACC__
#define OP_HASH_INLINE static inline __host__ __device__
#else
#define OP_HASH_INLINE static inline
#endif

/* The term of the word [bits] with index [index]. */
OP_HASH_INLINE uint64_t op_hash_word(uint64_t index, uint32_t bits)
{
    uint64_t x = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) + bits;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The hash of memory of the host. */
uint64_t op_hash_host(const void *from, size_t words);

#endif
