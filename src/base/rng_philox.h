/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Constants of Philox4x32-10 (Salmon and others, 2011), for rng.c and
 * rng_x86.c. */
#ifndef CDDP_BASE_RNG_PHILOX_H
#define CDDP_BASE_RNG_PHILOX_H

#define RNG_ROUNDS 10
/* Multipliers of the first and the third number of a block. */
#define RNG_FIRST 0xD2511F53u
#define RNG_THIRD 0xCD9E8D57u
/* Increments of the two halves of the key per round. */
#define RNG_STEP0 0x9E3779B9u
#define RNG_STEP1 0xBB67AE85u

#endif
