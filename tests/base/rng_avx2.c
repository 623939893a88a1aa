/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The compiler may use fused multiply-add here; -ffp-contract=off must prevent
 * it. */
#define VARIANT(name) name##_avx2
#define VARIANT_NAME "avx2"
#if defined(__x86_64__)
#define VARIANT_PHILOX philox_avx2
#define VARIANT_RUNS \
    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
#define BASE_CLONES __attribute__((target("avx2,fma")))
#else
#define VARIANT_PHILOX(key, counter, count, out) 0
#define VARIANT_RUNS false
#define BASE_CLONES
#endif
#include "tests/base/rng_variant.inc"
