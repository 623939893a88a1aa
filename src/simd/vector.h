/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * SIMD_CLONES before a function: it is compiled for several vector units, see
 * base/clones.h; with clang there is one version. All give the same bits, as
 * src/op is compiled without fused multiply-add (but for gemm_small.c,
 * activations.c and gemm.c).
 */
#ifndef CDDP_SIMD_VECTOR_H
#define CDDP_SIMD_VECTOR_H

#include "base/clones.h"

#if defined(__clang__)
#define SIMD_CLONES
#else
#define SIMD_CLONES BASE_CLONES
#endif

/* Before a loop over elements that are independent of each other, though its
 * result may lie over an input (in place): it may be vectorised. */
#if defined(__GNUC__) && !defined(__clang__)
#define SIMD_INDEPENDENT _Pragma("GCC ivdep")
#else
#define SIMD_INDEPENDENT
#endif

#endif
