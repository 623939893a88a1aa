/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * far_memory: the memory of the device "far" (dev_far.h). The process may
 * access its blocks only between far_memory_show and far_memory_hide; any other
 * access is a segmentation fault.
 *
 * Thread rule: the caller holds the device's lock.
 */
#ifndef CDDP_DEV_FAR_MEMORY_H
#define CDDP_DEV_FAR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct far_block far_block_t;

typedef struct far_memory {
    far_block_t *blocks; /* a list */
    size_t bytes;        /* of all blocks */
    bool shown;
} far_memory_t;

/* Map a zeroed block of [bytes] bytes, rounded up to MEM_ALIGN. The page behind
 * the block is never accessible. ERR_MEMORY names [what]. */
err_code_t far_memory_map(far_memory_t *memory, size_t bytes, const char *what,
                          void **out, err_t *err);
/* Unmap a block of far_memory_map. */
void far_memory_unmap(far_memory_t *memory, void *block);

/* Make all blocks accessible, or inaccessible. */
void far_memory_show(far_memory_t *memory);
void far_memory_hide(far_memory_t *memory);

/* Do the [bytes] bytes at [at] lie within one block? */
bool far_memory_has(const far_memory_t *memory, const void *at, size_t bytes);

#endif
