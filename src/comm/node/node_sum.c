/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The arithmetic of the node stage. The most frequent case, two ranks and
 * 32-bit floats, has a loop that reads each input and writes each result once.
 * The loop is compiled for several vector units, and the loader picks one
 * (base/clones.h). It has only additions, so all versions give the same bits.
 * All other cases use a block that stays in the first-level cache.
 */
#include "comm/node/node_sum.h"

#include "base/clones.h"

/* Buffers of up to this many bytes are prefetched as a whole. For larger
 * buffers the processor's own prefetching is better. */
#define OWN_MOST ((size_t)16 << 10)

/* With two ranks, and pieces above 8 KiB, lines that the other rank has just
 * written are prefetched 2 KiB before they are summed: then more lines are in
 * flight than with the processor's own prefetching. Prefetching them for
 * writing is slower. */
#define AHEAD 512                        /* floats */
#define AHEAD_LEAST 2048                 /* minimum floats of such a piece */
#define LINE (MEM_ALIGN / sizeof(float)) /* floats in a cache line */

__attribute__((always_inline)) static inline void
line_float32(float *a, float *b, size_t count)
{
    _Pragma("omp simd") for (size_t i = 0; i < count; i++)
    {
        float sum = a[i] + b[i];

        a[i] = sum;
        b[i] = sum;
    }
}

BASE_CLONES static void pair_float32(float *a, float *b, size_t count)
{
    size_t i = 0;

    for (; count > AHEAD_LEAST && i + AHEAD < count; i += LINE) {
        __builtin_prefetch(a + i + AHEAD);
        __builtin_prefetch(b + i + AHEAD);
        line_float32(a + i, b + i, LINE);
    }
    line_float32(a + i, b + i, count - i);
}

/* Reduce [some] elements, at most a block, from byte [at] on, in rank order. */
static void block_sum(char *const *buffers, int size, size_t at, size_t some,
                      comm_type_t type, comm_op_t op, comm_block_t *sum)
{
    comm_block_begin(sum, buffers[0] + at, some, type);
    for (int rank = 1; rank < size; rank++)
        comm_block_add(sum, buffers[rank] + at, some, type, op);
}

void node_sum(char *const *buffers, int size, size_t count, comm_type_t type,
              comm_op_t op)
{
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(type);
    comm_block_t sum;

    if (size == 2 && type == COMM_FLOAT32 && op == COMM_SUM) {
        pair_float32((float *)(void *)buffers[0], (float *)(void *)buffers[1],
                     count);
        return;
    }
    for (int i = 0; count * width <= OWN_MOST && i < size; i++)
        node_prefetch_write(buffers[i], count * width);
    for (size_t at = 0; at < count; at += step) {
        size_t some = count - at < step ? count - at : step;

        block_sum(buffers, size, at * width, some, type, op, &sum);
        for (int rank = 0; rank < size; rank++)
            comm_block_end(&sum, buffers[rank] + at * width, some, type);
    }
}

void node_sum_part(char *const *buffers, int size, size_t at, size_t count,
                   comm_type_t type, comm_op_t op, char *into)
{
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(type), end = at + count * width;
    comm_block_t sum;

    if (size == 1 && into == buffers[0])
        return;
    if (size == 2 && !comm_type_rounds(type)) {
        comm_reduce(into + at, buffers[0] + at, buffers[1] + at, count, type,
                    op);
        return;
    }
    for (; at < end; at += step * width) {
        size_t some = (end - at) / width < step ? (end - at) / width : step;

        block_sum(buffers, size, at, some, type, op, &sum);
        comm_block_end(&sum, into + at, some, type);
    }
}

void node_sum_into(char *const *buffers, int size, size_t count,
                   comm_type_t type, comm_op_t op, char *into)
{
    node_sum_part(buffers, size, 0, count, type, op, into);
}
