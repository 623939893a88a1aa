/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Arithmetic of collectives, element by element (internal to src/comm). */
#ifndef CDDP_COMM_REDUCE_H
#define CDDP_COMM_REDUCE_H

#include "comm/comm_collective.h"

#define COMM_TYPES (COMM_FLOAT16 + 1)
#define COMM_OPS (COMM_MIN + 1)

size_t comm_type_bytes(comm_type_t type);
const char *comm_type_name(comm_type_t type); /* "float32" */
/* Return whether sums of this type are computed in a wider type. */
bool comm_type_rounds(comm_type_t type);

/* into = a op b, element by element. [into] may be [a] or [b]. Operands keep
 * their order, and a NaN makes a maximum NaN, so equal inputs give equal bits
 * wherever they are computed. */
void comm_reduce(void *into, const void *a, const void *b, size_t count,
                 comm_type_t type, comm_op_t op);

/* Reduce many parts and round once at the end: begin with the first part, add
 * the others in order, end. Up to COMM_BLOCK_ELEMENTS elements at a time, which
 * stay in the first-level cache. */
#define COMM_BLOCK_ELEMENTS 1024
typedef struct comm_block {
    _Alignas(64) unsigned char elements[COMM_BLOCK_ELEMENTS * sizeof(double)];
} comm_block_t;

void comm_block_begin(comm_block_t *block, const void *part, size_t count,
                      comm_type_t type);
void comm_block_add(comm_block_t *block, const void *part, size_t count,
                    comm_type_t type, comm_op_t op);
void comm_block_end(const comm_block_t *block, void *into, size_t count,
                    comm_type_t type);

#endif
