/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Philox multiplies 32-bit numbers to 64-bit products. Vector units have one
 * instruction for this, but compilers generate three, those of a 64-bit
 * product. So the rounds use intrinsics: AVX-512 F and AVX2. A 64-bit lane
 * holds one number of a block in its low half; the high half is ignored.
 */
#include "base/rng_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/rng_philox.h"

#define AVX512 __attribute__((target("avx512f")))
#define AVX2 __attribute__((target("avx2")))

/* ---- 8 blocks at a time -------------------------------------------------- */

#define LANES_AVX512 8

AVX512 static inline void rounds_avx512(const __m512i keys[2 * RNG_ROUNDS],
                                        __m512i x[4])
{
    const __m512i first = _mm512_set1_epi64(RNG_FIRST);
    const __m512i third = _mm512_set1_epi64(RNG_THIRD);

    for (int round = 0; round < RNG_ROUNDS; round++) {
        __m512i a = _mm512_mul_epu32(first, x[0]);
        __m512i b = _mm512_mul_epu32(third, x[2]);

        /* 0x96: exclusive or of three operands */
        x[0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), x[1],
                                         keys[2 * round], 0x96);
        x[2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), x[3],
                                         keys[2 * round + 1], 0x96);
        x[1] = b;
        x[3] = a;
    }
}

AVX512 static size_t philox_avx512(const uint32_t key[2],
                                   const uint32_t counter[4], size_t count,
                                   uint32_t *const out[4])
{
    __m512i position =
        _mm512_add_epi64(_mm512_set1_epi64(counter[0]),
                         _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    __m512i keys[2 * RNG_ROUNDS];
    size_t i = 0;

    for (uint32_t k = 0; k < RNG_ROUNDS; k++) {
        keys[2 * k] = _mm512_set1_epi64(key[0] + k * RNG_STEP0);
        keys[2 * k + 1] = _mm512_set1_epi64(key[1] + k * RNG_STEP1);
    }
    for (; i + LANES_AVX512 <= count; i += LANES_AVX512) {
        __m512i x[4] = {position, _mm512_set1_epi64(counter[1]),
                        _mm512_set1_epi64(counter[2]),
                        _mm512_set1_epi64(counter[3])};

        rounds_avx512(keys, x);
        for (int k = 0; k < 4; k++)
            _mm256_storeu_si256((void *)(out[k] + i),
                                _mm512_cvtepi64_epi32(x[k]));
        position = _mm512_add_epi64(position, _mm512_set1_epi64(LANES_AVX512));
    }
    return i;
}

/* ---- 4 blocks at a time -------------------------------------------------- */

#define LANES_AVX2 4

AVX2 static inline void rounds_avx2(const __m256i keys[2 * RNG_ROUNDS],
                                    __m256i x[4])
{
    const __m256i first = _mm256_set1_epi64x(RNG_FIRST);
    const __m256i third = _mm256_set1_epi64x(RNG_THIRD);

    for (int round = 0; round < RNG_ROUNDS; round++) {
        __m256i a = _mm256_mul_epu32(first, x[0]);
        __m256i b = _mm256_mul_epu32(third, x[2]);

        x[0] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(b, 32), x[1]), keys[2 * round]);
        x[2] =
            _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), x[3]),
                             keys[2 * round + 1]);
        x[1] = b;
        x[3] = a;
    }
}

AVX2 static size_t philox_avx2(const uint32_t key[2], const uint32_t counter[4],
                               size_t count, uint32_t *const out[4])
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m256i position = _mm256_add_epi64(_mm256_set1_epi64x(counter[0]),
                                        _mm256_setr_epi64x(0, 1, 2, 3));
    __m256i keys[2 * RNG_ROUNDS];
    size_t i = 0;

    for (uint32_t k = 0; k < RNG_ROUNDS; k++) {
        keys[2 * k] = _mm256_set1_epi64x(key[0] + k * RNG_STEP0);
        keys[2 * k + 1] = _mm256_set1_epi64x(key[1] + k * RNG_STEP1);
    }
    for (; i + LANES_AVX2 <= count; i += LANES_AVX2) {
        __m256i x[4] = {position, _mm256_set1_epi64x(counter[1]),
                        _mm256_set1_epi64x(counter[2]),
                        _mm256_set1_epi64x(counter[3])};

        rounds_avx2(keys, x);
        for (int k = 0; k < 4; k++)
            _mm_storeu_si128((void *)(out[k] + i),
                             _mm256_castsi256_si128(
                                 _mm256_permutevar8x32_epi32(x[k], even)));
        position = _mm256_add_epi64(position, _mm256_set1_epi64x(LANES_AVX2));
    }
    return i;
}

size_t rng_x86_philox(const uint32_t key[2], const uint32_t counter[4],
                      size_t count, uint32_t *const out[4])
{
    if (__builtin_cpu_supports("avx512f"))
        return philox_avx512(key, counter, count, out);
    if (__builtin_cpu_supports("avx2"))
        return philox_avx2(key, counter, count, out);
    return 0;
}

#else

size_t rng_x86_philox(const uint32_t key[2], const uint32_t counter[4],
                      size_t count, uint32_t *const out[4])
{
    (void)key;
    (void)counter;
    (void)count;
    (void)out;
    return 0;
}

#endif
