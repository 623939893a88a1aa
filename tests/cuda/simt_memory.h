/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Loads and stores with a hint for the caches, fences, and atomics.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_MEMORY_H
#define CDDP_TESTS_CUDA_SIMT_MEMORY_H

/* ---- memory -------------------------------------------------------------- */

#define SIMT_LOAD(name)                             \
    template <class T> inline T name(const T *from) \
    {                                               \
        return *from;                               \
    }
#define SIMT_STORE(name)                                \
    template <class T> inline void name(T *to, T value) \
    {                                                   \
        *to = value;                                    \
    }

SIMT_LOAD(__ldg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldca)
SIMT_STORE(__stcs)
SIMT_STORE(__stcg)
SIMT_STORE(__stwb)
#undef SIMT_LOAD
#undef SIMT_STORE

inline void __threadfence()
{
}

inline void __threadfence_block()
{
}

/* A kernel that calls it has found a bug of its host code. */
inline void __trap()
{
    __builtin_trap();
}

/* Threads run one at a time, so each of these is atomic. */
#define SIMT_ATOMIC(name, type, after)     \
    inline type name(type *at, type value) \
    {                                      \
        const type before = *at;           \
                                           \
        *at = after;                       \
        return before;                     \
    }
#define SIMT_ATOMICS(type)                                        \
    SIMT_ATOMIC(atomicAdd, type, before + value)                  \
    SIMT_ATOMIC(atomicMin, type, value < before ? value : before) \
    SIMT_ATOMIC(atomicMax, type, value > before ? value : before) \
    SIMT_ATOMIC(atomicAnd, type, before &value)                   \
    SIMT_ATOMIC(atomicOr, type, before | value)                   \
    SIMT_ATOMIC(atomicXor, type, before ^ value)                  \
    SIMT_ATOMIC(atomicExch, type, value)                          \
    inline type atomicCAS(type *at, type expected, type value)    \
    {                                                             \
        const type before = *at;                                  \
                                                                  \
        if (before == expected)                                   \
            *at = value;                                          \
        return before;                                            \
    }

SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned)
SIMT_ATOMICS(unsigned long long)
SIMT_ATOMIC(atomicSub, int, before - value)
SIMT_ATOMIC(atomicSub, unsigned, before - value)
SIMT_ATOMIC(atomicInc, unsigned, before >= value ? 0 : before + 1)
#undef SIMT_ATOMIC
#undef SIMT_ATOMICS

#endif
