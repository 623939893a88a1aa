/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The instruction sets that oneDNN uses in this process; cddp uses the same.
 * The environment (ONEDNN_MAX_CPU_ISA) can restrict them.
 *
 * One kind of machine needs a workaround: a virtual machine that reports and
 * runs AMX, but does not report the size of its tiles (CPUID leaf 0x1d is
 * empty). oneDNN (2.6 to 3.x, and software based on it) then configures no
 * tiles, and stops with an illegal instruction at the first bfloat16 product.
 * On such a machine AMX is not used, unless the environment sets the
 * instruction set.
 */
#ifndef CDDP_SIMD_ISA_H
#define CDDP_SIMD_ISA_H

#include <stdbool.h>

/* The instruction sets, as a mask of dnnl_cpu_isa_t. May be called by any
 * thread; the first call must precede oneDNN's first primitive. */
unsigned simd_isa(void);

/* Do the CPU and oneDNN support bfloat16 products? */
bool simd_has_bf16(void);
/* Do they also support AMX tiles, and did the system grant them to oneDNN? */
bool simd_has_amx(void);

/* Does the CPU report AMX, but not its tiles? */
bool simd_hides_tiles(void);

#endif
