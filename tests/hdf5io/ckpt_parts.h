/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ckpt_parts: divides the optimizer's tensors of ckpt_fixture.h into parts, as
 * ZeRO does. The ranks get the parts in turns.
 */
#ifndef CDDP_TESTS_CKPT_PARTS_H
#define CDDP_TESTS_CKPT_PARTS_H

#include "ckpt_fixture.h"

/* How elements are divided. */
typedef struct ckpt_deal {
    /* Each rank in turn gets this number of consecutive elements, so that a
     * rank has several parts of a tensor; 0: all tensors are whole. */
    int turn;
    int skip; /* a rank that gets no elements, -1: none */
    /* A save takes the elements from a buffer, and the tensors change
     * meanwhile. */
    bool buffer;
} ckpt_deal_t;

/* Bodies for ckpt_ranks_run; their context is a ckpt_deal_t. */
void ckpt_parts_write(ckpt_rank_t *rank, void *context);
void ckpt_parts_read(ckpt_rank_t *rank, void *context);

/* ckpt_parts_save saves the state [seed] with [size] ranks. ckpt_parts_expect
 * reads it with [size] ranks: each must get the exact bits of the elements that
 * it owns, and nothing else may change. */
void ckpt_parts_save(const char *home, int size, int64_t seed,
                     ckpt_deal_t deal);
void ckpt_parts_expect(const char *home, int size, int64_t seed,
                       ckpt_deal_t deal);

#endif
