/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which instructions oneDNN uses in this process, and so do we. The environment
 * (ONEDNN_MAX_CPU_ISA) can lower it.
 *
 * One kind of machine needs help: a virtual one that says it has AMX, and runs
 * it, but does not say how large its tiles are (CPUID leaf 0x1d is empty).
 * oneDNN (2.6 to 3.x, and what stands on it) then configures no tiles, and ends
 * in an illegal instruction at the first product of bfloat16. There AMX is left
 * alone, unless the environment says what to use.
 */
#ifndef CDDP_SIMD_ISA_H
#define CDDP_SIMD_ISA_H

#include <stdbool.h>

/* The instruction sets, as a mask of dnnl_cpu_isa_t. Any thread; the first call
 * has to come before oneDNN's first primitive. */
unsigned simd_isa(void);

/* Does this CPU multiply bfloat16, and the library know how? */
bool simd_has_bf16(void);
/* And has it tiles for that, which the library got from the system? */
bool simd_has_amx(void);

/* Does it say that it has AMX, and hide its tiles? */
bool simd_hides_tiles(void);

#endif
