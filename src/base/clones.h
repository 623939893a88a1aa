/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * BASE_CLONES before a function: it is compiled for several vector units, and
 * the loader picks the widest that this CPU has. They give the same bits where
 * no fused multiply-add can come in (none in the code, or -ffp-contract=off).
 * Sanitizers do not get along with such functions: there is one version then.
 * So there is where the compiler may take the vector unit for granted anyway
 * (64-bit ARM: NEON). With clang the names of such functions must differ
 * between files: the function that picks is visible outside.
 */
#ifndef CDDP_BASE_CLONES_H
#define CDDP_BASE_CLONES_H

#define BASE_CLONES

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BASE_SANITIZED 1
#elif defined(__has_feature) /* clang tells so */
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
