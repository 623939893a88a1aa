/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* rng_fill.c for the compiler's default vector unit. */
#define VARIANT(name) name##_plain
#define VARIANT_NAME "plain"
#define VARIANT_PHILOX(key, counter, count, out) 0
#define VARIANT_RUNS true
#define BASE_CLONES
#include "tests/base/rng_variant.inc"
