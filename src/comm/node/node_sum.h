/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The arithmetic of the node stage (node_sum.c). */
#ifndef CDDP_COMM_NODE_SUM_H
#define CDDP_COMM_NODE_SUM_H

#include "base/mem.h"
#include "comm/comm_ops.h"

/* Ask for the cache lines of [bytes] bytes at [at] to be read and then written:
 * they come with the right to write, so that the writing waits for nobody. */
static inline void node_lines_own(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += MEM_ALIGN) {
#if defined(__x86_64__) /* the builtin does not, unless told that it exists */
        __asm__ volatile("prefetchw %0" ::"m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
    }
}

/* Reduce [count] elements at parts[0 .. size-1] in that order; the result goes
 * to all of them. */
void node_sum(char *const *parts, int size, size_t count, comm_type_t type,
              comm_op_t op);
/* The same for [count] elements at offset [at], in bytes, of each; the result
 * goes to that of [into], which may be one of them. */
void node_sum_part(char *const *parts, int size, size_t at, size_t count,
                   comm_type_t type, comm_op_t op, char *into);
/* The same from offset 0. */
void node_sum_into(char *const *parts, int size, size_t count, comm_type_t type,
                   comm_op_t op, char *into);

#endif
