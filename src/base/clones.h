/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A function with BASE_CLONES is compiled for several vector units, and the
 * loader selects the widest one of this CPU. All versions give the same bits if
 * no fused multiply-add can be used (there is none in the code, or
 * -ffp-contract=off). There is only one version under sanitizers, which do not
 * support such functions, and where the compiler may use the vector unit anyway
 * (64-bit ARM: NEON). With clang the names of such functions must differ
 * between files, since the selecting function is visible outside.
 */
#ifndef CDDP_BASE_CLONES_H
#define CDDP_BASE_CLONES_H

#define BASE_CLONES

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BASE_SANITIZED 1
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define BASE_SANITIZED 1
#endif
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && \
    defined(__has_attribute) && !defined(BASE_SANITIZED)
#if __has_attribute(target_clones)
#undef BASE_CLONES
#define BASE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif

#endif
