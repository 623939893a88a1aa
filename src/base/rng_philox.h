/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The numbers of Philox4x32-10 (Salmon and others, 2011), which rng.c and
 * rng_x86.c compute. */
#ifndef CDDP_BASE_RNG_PHILOX_H
#define CDDP_BASE_RNG_PHILOX_H

#define RNG_ROUNDS 10
/* What the first and the third number of a block are multiplied by. */
#define RNG_FIRST 0xD2511F53u
#define RNG_THIRD 0xCD9E8D57u
/* What the halves of the key grow by in each round. */
#define RNG_STEP0 0x9E3779B9u
#define RNG_STEP1 0xBB67AE85u

#endif
