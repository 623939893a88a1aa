/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Variants of rng_fill.c, compiled for different vector units, so that one
 * machine can compare them. */
#ifndef CDDP_TESTS_BASE_RNG_VARIANT_H
#define CDDP_TESTS_BASE_RNG_VARIANT_H

#include <stdbool.h>

#include "base/rng.h"

typedef struct rng_variant {
    const char *name;
    bool (*runs)(void); /* does this CPU support it? */
    void (*normal)(rng_t *rng, double mean, double scale, float *out,
                   size_t count);
    void (*uniform)(rng_t *rng, double bound, float *out, size_t count);
    size_t (*count)(const rng_t *rng, uint64_t blocks);
} rng_variant_t;

extern const rng_variant_t rng_variant_plain, rng_variant_avx2,
    rng_variant_avx512;

#endif
