/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ckpt_parts: the optimizer's tensors of ckpt_fixture.h in parts on the ranks,
 * as ZeRO has them, dealt out in turns.
 */
#ifndef CDDP_TESTS_CKPT_PARTS_H
#define CDDP_TESTS_CKPT_PARTS_H

#include "ckpt_fixture.h"

/* How elements are divided. */
typedef struct ckpt_deal {
    /* This number of consecutive elements to each rank in turn, so that a rank
     * has several parts of a tensor; 0: all tensors are whole. */
    int turn;
    int skip; /* a rank that gets no elements, -1: none */
    /* A save takes them from a buffer, and the tensors change meanwhile. */
    bool buffer;
} ckpt_deal_t;

/* Bodies for ckpt_ranks_run; their context is a ckpt_deal_t. */
void ckpt_parts_write(ckpt_rank_t *rank, void *context);
void ckpt_parts_read(ckpt_rank_t *rank, void *context);

/* Save the state [seed] with [size] ranks. Read it with [size] ranks, which
 * must get the very bits that they own. */
void ckpt_parts_save(const char *home, int size, int64_t seed,
                     ckpt_deal_t deal);
void ckpt_parts_expect(const char *home, int size, int64_t seed,
                       ckpt_deal_t deal);

#endif
