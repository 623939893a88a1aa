/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/vector/channels_native.h"

#include <stddef.h>

#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)

#include <immintrin.h>

#define NATIVE __attribute__((target("avx512f,avx512bf16")))
#define CHANNELS_NATIVE
#define CHANNELS_INLINE NATIVE static inline __attribute__((always_inline))
#define CHANNELS_ENTRY NATIVE static void
#include "op/cpu/vector/channels_loops.inc"

const cpu_channels_t *cpu_channels_native(void)
{
    return __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bf16")
               ? &channels
               : NULL;
}

#else

const cpu_channels_t *cpu_channels_native(void)
{
    return NULL;
}

#endif
