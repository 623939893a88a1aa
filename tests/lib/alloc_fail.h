/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * alloc_fail: in a program that links this, blocks of mem_alloc can be refused,
 * as if the machine had no memory left. Blocks of the emulated plugin can be
 * refused, too.
 */
#ifndef CDDP_TESTS_LIB_ALLOC_FAIL_H
#define CDDP_TESTS_LIB_ALLOC_FAIL_H

#include <stdbool.h>

/* Refuse a later block of the calling thread: [number] 1 is its next block. */
void alloc_fail(long number);

/* Refuse no block from now on. Returns whether a block was refused since the
 * last call of alloc_fail. */
bool alloc_fail_end(void);

#endif
