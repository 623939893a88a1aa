/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Compilers vectorize poorly if loops change the width of elements, so these
 * loops use intrinsics: AVX-512 F, and AVX2 with F16C. The arithmetic is that
 * of half.c; the instructions for fp16 round in the same way.
 */
#include "base/half_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#define AVX512 __attribute__((target("avx512f")))
#define AVX2 __attribute__((target("avx2,f16c")))

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

/* Every CPU with AVX2 has F16C. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

/* ---- 16 elements at a time ----------------------------------------------- */

AVX512 static size_t widen_bf16_avx512(float *to, const uint16_t *from,
                                       size_t count)
{
    size_t i = 0;

    for (; i + 16 <= count; i += 16) {
        __m256i half = _mm256_loadu_si256((const void *)(from + i));

        _mm512_storeu_si512(to + i,
                            _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
    return i;
}

AVX512 static size_t widen_fp16_avx512(float *to, const uint16_t *from,
                                       size_t count)
{
    size_t i = 0;

    for (; i + 16 <= count; i += 16) {
        __m256i half = _mm256_loadu_si256((const void *)(from + i));

        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(half));
    }
    return i;
}

AVX512 static size_t round_bf16_avx512(uint16_t *to, const float *from,
                                       size_t count)
{
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i half = _mm512_set1_epi32(0x7fff);
    const __m512i quiet = _mm512_set1_epi32(0x40);
    size_t i = 0;

    for (; i + 16 <= count; i += 16) {
        __m512 value = _mm512_loadu_ps(from + i);
        __m512i bits = _mm512_castps_si512(value);
        __m512i upper = _mm512_srli_epi32(bits, 16);
        __m512i odd = _mm512_and_si512(upper, one);
        __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, half), odd);
        __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        __m512i wide =
            _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), nan, upper, quiet);

        _mm256_storeu_si256((void *)(to + i), _mm512_cvtepi32_epi16(wide));
    }
    return i;
}

AVX512 static size_t round_fp16_avx512(uint16_t *to, const float *from,
                                       size_t count)
{
    size_t i = 0;

    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(to + i),
            _mm512_cvtps_ph(_mm512_loadu_ps(from + i),
                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return i;
}

/* ---- 8 elements at a time ------------------------------------------------ */

AVX2 static size_t widen_bf16_avx2(float *to, const uint16_t *from,
                                   size_t count)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m128i half = _mm_loadu_si128((const void *)(from + i));

        _mm256_storeu_si256((void *)(to + i),
                            _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
    return i;
}

AVX2 static size_t widen_fp16_avx2(float *to, const uint16_t *from,
                                   size_t count)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m128i half = _mm_loadu_si128((const void *)(from + i));

        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
    }
    return i;
}

AVX2 static size_t round_bf16_avx2(uint16_t *to, const float *from,
                                   size_t count)
{
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i half = _mm256_set1_epi32(0x7fff);
    const __m256i quiet = _mm256_set1_epi32(0x40);
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_loadu_ps(from + i);
        __m256i bits = _mm256_castps_si256(value);
        __m256i upper = _mm256_srli_epi32(bits, 16);
        __m256i odd = _mm256_and_si256(upper, one);
        __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, half), odd);
        __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
        __m256i wide = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16),
                                          _mm256_or_si256(upper, quiet),
                                          _mm256_castps_si256(nan));
        __m256i both = _mm256_packus_epi32(wide, wide);

        both = _mm256_permute4x64_epi64(both, 0x08);
        _mm_storeu_si128((void *)(to + i), _mm256_castsi256_si128(both));
    }
    return i;
}

AVX2 static size_t round_fp16_avx2(uint16_t *to, const float *from,
                                   size_t count)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(
            (void *)(to + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return i;
}

/* ---- the choice ---------------------------------------------------------- */

size_t half_x86_widen_bf16(float *to, const uint16_t *from, size_t count)
{
    return has_avx512() ? widen_bf16_avx512(to, from, count)
           : has_avx2() ? widen_bf16_avx2(to, from, count)
                        : 0;
}

size_t half_x86_widen_fp16(float *to, const uint16_t *from, size_t count)
{
    return has_avx512() ? widen_fp16_avx512(to, from, count)
           : has_avx2() ? widen_fp16_avx2(to, from, count)
                        : 0;
}

size_t half_x86_round_bf16(uint16_t *to, const float *from, size_t count)
{
    return has_avx512() ? round_bf16_avx512(to, from, count)
           : has_avx2() ? round_bf16_avx2(to, from, count)
                        : 0;
}

size_t half_x86_round_fp16(uint16_t *to, const float *from, size_t count)
{
    return has_avx512() ? round_fp16_avx512(to, from, count)
           : has_avx2() ? round_fp16_avx2(to, from, count)
                        : 0;
}

#else

size_t half_x86_widen_bf16(float *to, const uint16_t *from, size_t count)
{
    (void)to;
    (void)from;
    (void)count;
    return 0;
}

size_t half_x86_widen_fp16(float *to, const uint16_t *from, size_t count)
{
    return half_x86_widen_bf16(to, from, count);
}

size_t half_x86_round_bf16(uint16_t *to, const float *from, size_t count)
{
    (void)to;
    (void)from;
    (void)count;
    return 0;
}

size_t half_x86_round_fp16(uint16_t *to, const float *from, size_t count)
{
    return half_x86_round_bf16(to, from, count);
}

#endif
