/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Blocks of the generator with the vector units of x86, as far as this CPU has
 * them. (internal to rng_fill.c)
 */
#ifndef CDDP_BASE_RNG_X86_H
#define CDDP_BASE_RNG_X86_H

#include <stddef.h>
#include <stdint.h>

/* rng_philox at [count] positions: counter[0] of the first is counter[0], of
 * the next one more, and so on, modulo 2^32. Number k of block i goes
 * to out[k][i]. Returns how many blocks from the first on it has done, a whole
 * number of vectors; zero on other CPUs. */
size_t rng_x86_philox(const uint32_t key[2], const uint32_t counter[4],
                      size_t count, uint32_t *const out[4]);

#endif
