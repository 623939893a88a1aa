/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * alloc_count: a program that links this counts the calls of malloc, calloc,
 * realloc and the aligned forms by each thread.
 */
#ifndef CDDP_TESTS_LIB_ALLOC_COUNT_H
#define CDDP_TESTS_LIB_ALLOC_COUNT_H

#include <stdbool.h>

/* False in builds with sanitizers, which replace malloc themselves. */
bool alloc_count_works(void);

/* Number of allocations by the calling thread so far, without those inside
 * oneDNN: each call of its execute builds a small map of arguments, which no
 * caller can avoid (2.6 and 3.x; a few dozen bytes, which malloc reuses). */
long alloc_count(void);
long alloc_count_onednn(void);

#endif
