/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The arithmetic of the node stage (node_sum.c). */
#ifndef CDDP_COMM_NODE_SUM_H
#define CDDP_COMM_NODE_SUM_H

#include "base/mem.h"
#include "comm/comm_ops.h"

/* Prefetch the cache lines of [bytes] bytes at [at] for writing, so that a
 * later store need not wait. */
static inline void node_prefetch_write(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += MEM_ALIGN) {
#if defined(__x86_64__) /* the builtin does not, unless told that it exists */
        __asm__ volatile("prefetchw %0" ::"m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
    }
}

/* Reduce [count] elements of buffers[0 .. size-1], in this order. All of the
 * buffers get the result. */
void node_sum(char *const *buffers, int size, size_t count, comm_type_t type,
              comm_op_t op);
/* Reduce [count] elements from byte [at] on of each buffer, in this order. The
 * result is stored from byte [at] of [into] on; [into] may be one of the
 * buffers. */
void node_sum_part(char *const *buffers, int size, size_t at, size_t count,
                   comm_type_t type, comm_op_t op, char *into);
/* As node_sum_part, from byte 0 on. */
void node_sum_into(char *const *buffers, int size, size_t count,
                   comm_type_t type, comm_op_t op, char *into);

#endif
