/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Blocks of an op's workspace or scratch: each begins at a multiple of 256
 * bytes, as memory of cudaMalloc does. */
#ifndef CDDP_OP_CUDA_ROOM_H
#define CDDP_OP_CUDA_ROOM_H

#include <stddef.h>
#include <stdint.h>

/* Take [bytes] at *end, and move *end behind them. Returns the offset of the
 * block in bytes. */
static inline size_t cuda_room_take(size_t *end, size_t bytes)
{
    const size_t at = *end;

    *end += (bytes + 255) / 256 * 256;
    return at;
}

/* Take [count] float32. */
static inline size_t cuda_room_floats(size_t *end, int64_t count)
{
    return cuda_room_take(end, (size_t)count * sizeof(float));
}

/* Take [count] bfloat16. */
static inline size_t cuda_room_halves(size_t *end, int64_t count)
{
    return cuda_room_take(end, (size_t)count * 2);
}

/* The block at offset [at] of [memory]. */
static inline void *cuda_room_at(void *memory, size_t at)
{
    return (char *)memory + at;
}

/* CUDA's libraries want the alignment of cudaMalloc, while the scratch of an op
 * may begin at any multiple of 64 bytes: take CUDA_ROOM_EXTRA bytes more, and
 * give them the first aligned address. */
#define CUDA_ROOM_EXTRA ((size_t)256)

static inline void *cuda_room_align(void *memory)
{
    return (void *)(((uintptr_t)memory + 255) & ~(uintptr_t)255);
}

#endif
