/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Work that is cut into pieces of which whoever comes claims one: how large
 * they are, and a counter of those that were claimed or done. A counter is used
 * in turn after turn (a collective, a segment) and never set back: it holds
 * (turn + 1) << 24 | pieces of that turn.
 */
#ifndef CDDP_COMM_NODE_CLAIM_H
#define CDDP_COMM_NODE_CLAIM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

#define NODE_CLAIM_BITS 24
#define NODE_CLAIM_MASK ((UINT64_C(1) << NODE_CLAIM_BITS) - 1)

/* Large enough that claiming one costs nothing. */
#define NODE_PIECE_LEAST ((size_t)4 << 10)

typedef atomic_uint_fast64_t node_counter_t;

/* The bytes of a piece of [bytes] bytes for [ranks] ranks: one each, within
 * limits, and no more pieces than a counter holds. Pure. */
static inline size_t node_piece_bytes(size_t bytes, int ranks, size_t most)
{
    size_t piece = mem_round(bytes / (size_t)ranks);

    if (piece < NODE_PIECE_LEAST)
        return NODE_PIECE_LEAST;
    if (piece > most)
        piece = most;
    while (bytes / piece >> (NODE_CLAIM_BITS - 2))
        piece *= 2;
    return piece;
}

/* So many of [turn] are counted; more than any, if that turn is over. */
static inline unsigned node_counted(const node_counter_t *counter,
                                    uint64_t turn)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_acquire);

    if (now >> NODE_CLAIM_BITS == turn + 1)
        return (unsigned)(now & NODE_CLAIM_MASK);
    return now >> NODE_CLAIM_BITS > turn + 1 ? (unsigned)NODE_CLAIM_MASK : 0;
}

/* One more, if they are less than [most]; how many there were, or [most]. The
 * first one begins the turn. */
static inline unsigned node_count_up(node_counter_t *counter, uint64_t turn,
                                     unsigned most)
{
    uint64_t now = atomic_load(counter), had;

    do {
        had = now >> NODE_CLAIM_BITS == turn + 1 ? now & NODE_CLAIM_MASK : 0;
        if (had >= most || now >> NODE_CLAIM_BITS > turn + 1)
            return most;
    } while (!atomic_compare_exchange_weak(
        counter, &now, (turn + 1) << NODE_CLAIM_BITS | (had + 1)));
    return (unsigned)had;
}

#endif
