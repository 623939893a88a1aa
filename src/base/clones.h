/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * BASE_CLONES before a function: it is compiled for several vector units, and
 * the loader picks the widest that this CPU has. They give the same bits where
 * no fused multiply-add can come in (none in the code, or -ffp-contract=off).
 * Sanitizers do not get along with such functions: there is one version then.
 */
#ifndef CDDP_BASE_CLONES_H
#define CDDP_BASE_CLONES_H

#define BASE_CLONES

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#undef BASE_CLONES
#define BASE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif

#endif
