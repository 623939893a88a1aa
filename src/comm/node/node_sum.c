/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The arithmetic of the node stage. Two ranks and 32-bit floats, the commonest
 * case, have a loop that reads each input and writes each result once, compiled
 * for several vector units of which the loader picks one (base/clones.h); there
 * is nothing but additions in it, so all give the same bits. Everything else
 * goes through a block that stays in the first-level cache.
 */
#include "comm/node/node_sum.h"

#include "base/clones.h"

/* Parts up to so many bytes are asked for to be written at once. Of larger ones
 * the processor reads ahead by itself, and better. */
#define OWN_MOST ((size_t)16 << 10)

/* Of two ranks' pieces above 8 KiB, lines that the other rank has just written
 * are asked for 2 KiB before their turn: more of them are on their way at a
 * time than the processor asks for by itself. To ask for the right to write,
 * too, is slower. In floats: */
#define AHEAD 512
#define AHEAD_LEAST 2048
#define LINE (MEM_ALIGN / sizeof(float))

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

/* [some] elements from offset [at] on, at most a block, in rank order. */
static void block_sum(char *const *parts, int size, size_t at, size_t some,
                      comm_type_t type, comm_op_t op, comm_block_t *sum)
{
    comm_block_begin(sum, parts[0] + at, some, type);
    for (int rank = 1; rank < size; rank++)
        comm_block_add(sum, parts[rank] + at, some, type, op);
}

void node_sum(char *const *parts, int size, size_t count, comm_type_t type,
              comm_op_t op)
{
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(type);
    comm_block_t sum;

    if (size == 2 && type == COMM_FLOAT32 && op == COMM_SUM) {
        pair_float32((float *)(void *)parts[0], (float *)(void *)parts[1],
                     count);
        return;
    }
    for (int i = 0; count * width <= OWN_MOST && i < size; i++)
        node_lines_own(parts[i], count * width);
    for (size_t at = 0; at < count; at += step) {
        size_t some = count - at < step ? count - at : step;

        block_sum(parts, size, at * width, some, type, op, &sum);
        for (int rank = 0; rank < size; rank++)
            comm_block_end(&sum, parts[rank] + at * width, some, type);
    }
}

void node_sum_part(char *const *parts, int size, size_t at, size_t count,
                   comm_type_t type, comm_op_t op, char *into)
{
    const size_t step = COMM_BLOCK_ELEMENTS;
    size_t width = comm_type_bytes(type), end = at + count * width;
    comm_block_t sum;

    if (size == 1 && into == parts[0])
        return;
    if (size == 2 && !comm_type_rounds(type)) {
        comm_reduce(into + at, parts[0] + at, parts[1] + at, count, type, op);
        return;
    }
    for (; at < end; at += step * width) {
        size_t some = (end - at) / width < step ? (end - at) / width : step;

        block_sum(parts, size, at, some, type, op, &sum);
        comm_block_end(&sum, into + at, some, type);
    }
}

void node_sum_into(char *const *parts, int size, size_t count, comm_type_t type,
                   comm_op_t op, char *into)
{
    node_sum_part(parts, size, 0, count, type, op, into);
}
