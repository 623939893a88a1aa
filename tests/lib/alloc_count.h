/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * alloc_count: a program that links this counts the calls of malloc, calloc,
 * realloc and the aligned forms by each thread.
 */
#ifndef CDDP_TESTS_LIB_ALLOC_COUNT_H
#define CDDP_TESTS_LIB_ALLOC_COUNT_H

#include <stdbool.h>

/* False in builds with sanitizers, which bring their own malloc. */
bool alloc_count_works(void);

/* Allocations by the calling thread so far. */
long alloc_count(void);

#endif
