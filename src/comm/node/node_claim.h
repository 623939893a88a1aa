/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Work is cut into pieces, which any rank may claim: how large the pieces are,
 * and a counter of the pieces that were claimed or done. A counter serves turn
 * after turn (a collective, a segment) and is never set back: it holds (turn +
 * 1) << 24 | pieces of that turn.
 */
#ifndef CDDP_COMM_NODE_CLAIM_H
#define CDDP_COMM_NODE_CLAIM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"
#include "base/mem.h"

#define NODE_CLAIM_BITS 24
#define NODE_CLAIM_MASK ((UINT64_C(1) << NODE_CLAIM_BITS) - 1)

/* Bytes: large enough that the cost of a claim does not count. */
#define NODE_PIECE_LEAST ((size_t)4 << 10)

typedef atomic_uint_fast64_t node_counter_t;

/* Bytes of each piece (but the last) of [bytes] bytes: one piece for each of
 * [ranks] ranks, of at least NODE_PIECE_LEAST and at most [most] bytes, and no
 * more pieces than a counter holds. Pure. */
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

/* Count within [turn]; NODE_CLAIM_MASK if the turn has passed. */
static inline unsigned node_counted(const node_counter_t *counter,
                                    uint64_t turn)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_acquire);

    if (now >> NODE_CLAIM_BITS == turn + 1)
        return (unsigned)(now & NODE_CLAIM_MASK);
    return now >> NODE_CLAIM_BITS > turn + 1 ? (unsigned)NODE_CLAIM_MASK : 0;
}

/* Count one more of [turn] if that makes at most [most]; how many there were
 * before, or [most] if none was counted. The first one begins the turn. */
static inline unsigned node_count_up(node_counter_t *counter, uint64_t turn,
                                     unsigned most)
{
    uint64_t now = atomic_load(counter), had;

    check(most > 0 && most < NODE_CLAIM_MASK, "%u pieces are counted", most);
    do {
        had = now >> NODE_CLAIM_BITS == turn + 1 ? now & NODE_CLAIM_MASK : 0;
        if (had >= most || now >> NODE_CLAIM_BITS > turn + 1)
            return most;
    } while (!atomic_compare_exchange_weak(
        counter, &now, (turn + 1) << NODE_CLAIM_BITS | (had + 1)));
    return (unsigned)had;
}

#endif
