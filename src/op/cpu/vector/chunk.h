/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Loops over tensors that are stored as bfloat16. CPU_CHUNK elements at a time
 * are converted to float32 in a buffer, processed, and rounded when they are
 * written back. The buffer stays in the L1 cache. A float32 tensor is read and
 * written in place.
 */
#ifndef CDDP_OP_CPU_VECTOR_CHUNK_H
#define CDDP_OP_CPU_VECTOR_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/half.h"

#define CPU_CHUNK 1024

/* Pointer to element [i] of [data]; NULL if [data] is NULL. */
static inline void *cpu_chunk_at(const void *data, int64_t i, bool bf16)
{
    if (data == NULL)
        return NULL;
    return (char *)(uintptr_t)data +
           (size_t)i * (bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* Elements [from, from + count) of [data] as float32: in place, or converted
 * into [buffer]. */
static inline const float *cpu_chunk_read(const void *data, int64_t from,
                                          int64_t count, bool bf16,
                                          float *buffer)
{
    check(from >= 0 && (!bf16 || count <= CPU_CHUNK), "%d elements of a chunk",
          (int)count);
    if (!bf16)
        return (const float *)data + from;
    half_widen_bf16(buffer, (const uint16_t *)data + from, (size_t)count);
    return buffer;
}

/* Where to write elements from [from] on. After they are written, call
 * cpu_chunk_flush, which rounds them to [data] if necessary. */
static inline float *cpu_chunk_place(void *data, int64_t from, bool bf16,
                                     float *buffer)
{
    return bf16 ? buffer : (float *)data + from;
}

static inline void cpu_chunk_flush(void *data, int64_t from, int64_t count,
                                   bool bf16, const float *buffer)
{
    if (bf16)
        half_round_bf16((uint16_t *)data + from, buffer, (size_t)count);
}

/* Number of elements of [from, last) to process at a time. */
static inline int64_t cpu_chunk_count(int64_t from, int64_t last, bool bf16)
{
    check(from < last, "a chunk without elements");
    return bf16 && last - from > CPU_CHUNK ? CPU_CHUNK : last - from;
}

#endif
