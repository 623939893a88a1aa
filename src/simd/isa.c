/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simd/isa.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>

#define LEAF_FEATURES 7
#define AMX_TILE (1u << 24) /* bit of edx, CPUID leaf LEAF_FEATURES */
#define LEAF_TILES 0x1d

bool simd_hides_tiles(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) ||
        (d & AMX_TILE) == 0)
        return false;
    /* a is the number of the last palette; only palette 1 exists so far */
    return !__get_cpuid_count(LEAF_TILES, 0, &a, &b, &c, &d) || a == 0;
}
#else
bool simd_hides_tiles(void)
{
    return false;
}
#endif

/* A user's choice is respected even where it does not work. */
static bool isa_asked(void)
{
    return getenv("ONEDNN_MAX_CPU_ISA") != NULL ||
           getenv("DNNL_MAX_CPU_ISA") != NULL;
}

/* The call fails if oneDNN was used before; then its choice is final. */
static void isa_settle(void)
{
    if (simd_hides_tiles() && !isa_asked())
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
}

unsigned simd_isa(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, isa_settle);
    return (unsigned)dnnl_get_effective_cpu_isa();
}

/* Are all bits of [needed] set? A larger instruction set has the bits of the
 * smaller ones. */
static bool isa_holds(unsigned needed)
{
    return (simd_isa() & needed) == needed;
}

bool simd_has_bf16(void)
{
    return isa_holds(dnnl_cpu_isa_avx512_core_bf16);
}

bool simd_has_amx(void)
{
    return isa_holds(dnnl_cpu_isa_avx512_core_amx);
}
