/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The elements that dropout keeps, as a pure function of (seed, epoch, layer,
 * sample, element): Philox with a key made of seed and epoch, and the counter
 * {element / 4, layer, sample}. So the mask of a sample is the same on any
 * rank, in any batch and in any backend, and backward can compute it again.
 */
#ifndef CDDP_OP_OP_MASK_H
#define CDDP_OP_OP_MASK_H

#include <stdint.h>

#include "op/op.h"

typedef struct op_mask {
    uint32_t key[2];
    uint32_t layer;
    uint32_t
        threshold; /* an element is kept if its random number is >= threshold */
    float factor;  /* factor of the kept elements: 1/(1-rate) */
} op_mask_t;

/* Constants of the mask for one call. */
op_mask_t op_mask_make(const op_config_t *config, const op_args_t *args);

/* The four random numbers of elements 4*block .. 4*block+3 of [sample]. */
void op_mask_block(const op_mask_t *mask, uint64_t sample, uint32_t block,
                   uint32_t out[4]);

#endif
