/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Aligned memory, zeroed unless said otherwise; failures are errors with a
 * sentence. */
#ifndef CDDP_BASE_MEM_H
#define CDDP_BASE_MEM_H

#include <stddef.h>

#include "base/err.h"

/* Alignment of every block in bytes: a cache line, and an AVX-512 vector. */
#define MEM_ALIGN 64

/* Round [bytes] up to a multiple of MEM_ALIGN. */
size_t mem_round(size_t bytes);

/* Allocate [bytes] zeroed bytes, aligned to MEM_ALIGN (blocks of 8 MiB and
 * more: to 2 MiB, in huge pages if available). [what] names the purpose in the
 * error (ERR_MEMORY). A block of zero bytes must be freed, too. The caller
 * frees with mem_free. */
err_code_t mem_alloc(size_t bytes, const char *what, void **out, err_t *err);

/* The same for memory that the caller fills before anybody reads from it: the
 * bytes have any values. */
err_code_t mem_alloc_any(size_t bytes, const char *what, void **out,
                         err_t *err);

/* Allocate [count] zeroed objects of [type] as mem_alloc does. [out] is a type
 * **. A size that overflows is ERR_MEMORY, too. */
#define mem_new(type, count, what, out, err) \
    mem_new_array(sizeof(type), (count), (what), mem_out(type, out), (err))

/* Allocate one zeroed object of [type], a struct that ends with a flexible
 * array [member], with [count] elements of the array. */
#define mem_new_tail(type, member, count, what, out, err)                      \
    mem_new_struct(sizeof(type), sizeof((*(out))->member[0]), (count), (what), \
                   mem_out(type, out), (err))

/* A compile-time check that [out] is a type **. */
#define mem_out(type, out) (1 ? (out) : (type **)NULL)

/* Used by the macros. [out] is the address of a pointer of any type. */
err_code_t mem_new_array(size_t size, size_t count, const char *what, void *out,
                         err_t *err);
err_code_t mem_new_struct(size_t size, size_t each, size_t count,
                          const char *what, void *out, err_t *err);

/* Maximum resident memory of this process so far, in bytes; shared pages count
 * fully. 0 if the kernel does not provide it. */
double mem_peak(void);

/* Free a block of mem_alloc; NULL is allowed. */
void mem_free(void *block);

#endif
