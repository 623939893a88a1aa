/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * CPU_CLONES before a function: it is compiled for several vector units, see
 * base/clones.h; with clang there is one version. All give the same bits, as
 * src/op is compiled without fused multiply-add (but for block.c, curve.c and
 * gemm.c).
 */
#ifndef CDDP_SIMD_VECTOR_H
#define CDDP_SIMD_VECTOR_H

#include "base/clones.h"

#if defined(__clang__)
#define CPU_CLONES
#else
#define CPU_CLONES BASE_CLONES
#endif

/* Before a loop over elements that are independent of each other, though its
 * result may lie over an input (in place): it may be vectorised. */
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

#endif
