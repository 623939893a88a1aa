/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * CPU_CLONES before a function: it is compiled for several vector units, and
 * the loader picks the widest that this CPU has. All give the same bits, as
 * src/op is compiled without fused multiply-add (but for block.c, curve.c and
 * gemm.c). Sanitizers do not get along with such functions: there is one
 * version then.
 */
#ifndef CDDP_OP_CPU_VECTOR_H
#define CDDP_OP_CPU_VECTOR_H

#define CPU_CLONES

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#undef CPU_CLONES
#define CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif

/* Before a loop over elements that are independent of each other, though its
 * result may lie over an input (in place): it may be vectorised. */
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

#endif
