/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Blocks of the generator with the vector units of x86, if this CPU has them.
 * (internal to rng_fill.c)
 */
#ifndef CDDP_BASE_RNG_X86_H
#define CDDP_BASE_RNG_X86_H

#include <stddef.h>
#include <stdint.h>

/* rng_philox for [count] counters: counter[0] increases by one each time,
 * modulo 2^32. Number k of block i is written to out[k][i]. Returns the number
 * of finished blocks, from the first on: a multiple of the vector length, 0 on
 * other CPUs. */
size_t rng_x86_philox(const uint32_t key[2], const uint32_t counter[4],
                      size_t count, uint32_t *const out[4]);

#endif
