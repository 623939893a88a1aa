/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * SIMD_CLONES before a function: gcc compiles the function for several vector
 * units, see base/clones.h; clang compiles one version. All versions give the
 * same bits, because src/op is compiled without fused multiply-add (except
 * gemm_small.c, activations.c and gemm.c).
 */
#ifndef CDDP_SIMD_VECTOR_H
#define CDDP_SIMD_VECTOR_H

#include "base/clones.h"

#if defined(__clang__)
#define SIMD_CLONES
#else
#define SIMD_CLONES BASE_CLONES
#endif

/* Before a loop whose elements are independent of each other: the compiler may
 * vectorise it even if the result may overwrite an input (in place). */
#if defined(__GNUC__) && !defined(__clang__)
#define SIMD_INDEPENDENT _Pragma("GCC ivdep")
#else
#define SIMD_INDEPENDENT
#endif

#endif
