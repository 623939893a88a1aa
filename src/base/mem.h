/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Memory: aligned, zeroed, with an error sentence. */
#ifndef CDDP_BASE_MEM_H
#define CDDP_BASE_MEM_H

#include <stddef.h>

#include "base/err.h"

/* Alignment of every block: a cache line, and a full AVX-512 vector. */
#define MEM_ALIGN 64

/* Round [bytes] up to a multiple of MEM_ALIGN. */
size_t mem_round(size_t bytes);

/* Allocate [bytes] zeroed bytes, aligned to MEM_ALIGN (blocks of 8 MiB and more
 * to 2 MiB, in huge pages where the system has them), for [what] (named in the
 * error: ERR_MEMORY). Zero bytes give a block that must be freed, too. The
 * caller frees with mem_free. */
err_code_t mem_alloc(size_t bytes, const char *what, void **out, err_t *err);

/* Allocate [count] zeroed objects of [type], as mem_alloc does: [out] is a
 * type **. More bytes than a size_t counts are ERR_MEMORY, too. */
#define mem_new(type, count, what, out, err) \
    mem_new_array(sizeof(type), (count), (what), mem_out(type, out), (err))

/* The same: one object of [type], which ends with an array of unknown length,
 * with [count] elements of it. */
#define mem_new_tail(type, member, count, what, out, err)                      \
    mem_new_struct(sizeof(type), sizeof((*(out))->member[0]), (count), (what), \
                   mem_out(type, out), (err))

/* The compiler refuses an [out] that is no type **. */
#define mem_out(type, out) (1 ? (out) : (type **)NULL)

/* What the macros call. [out] is the address of a pointer of any type. */
err_code_t mem_new_array(size_t size, size_t count, const char *what, void *out,
                         err_t *err);
err_code_t mem_new_struct(size_t size, size_t each, size_t count,
                          const char *what, void *out, err_t *err);

/* The most memory that this process has had resident so far, in bytes; shared
 * pages count whole. 0 where the kernel does not say. */
double mem_peak(void);

/* Free a block of mem_alloc; NULL is allowed. */
void mem_free(void *block);

#endif
