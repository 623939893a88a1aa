/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Pieces of work that any rank may claim: their size, and counters of claimed
 * or completed pieces. A counter is used for one turn after the other (a
 * collective, a segment) and is never reset: its value is (turn + 1) << 24 |
 * pieces of that turn.
 */
#ifndef CDDP_COMM_NODE_CLAIM_H
#define CDDP_COMM_NODE_CLAIM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"
#include "base/mem.h"

#define NODE_CLAIM_BITS 24
#define NODE_CLAIM_MASK ((UINT64_C(1) << NODE_CLAIM_BITS) - 1)

/* Minimum bytes of a piece, so that the time of a claim does not matter. */
#define NODE_PIECE_LEAST ((size_t)4 << 10)

typedef atomic_uint_fast64_t node_counter_t;

/* Bytes of each piece except the last, if [bytes] bytes are divided. There is
 * one piece for each of [ranks] ranks, or more if a piece would have more than
 * [most] bytes, or fewer if it would have less than NODE_PIECE_LEAST. A counter
 * can count all pieces. Pure. */
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

/* The number of pieces counted in [turn]; NODE_CLAIM_MASK if the turn is
 * over. */
static inline unsigned node_counted(const node_counter_t *counter,
                                    uint64_t turn)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_acquire);

    if (now >> NODE_CLAIM_BITS == turn + 1)
        return (unsigned)(now & NODE_CLAIM_MASK);
    return now >> NODE_CLAIM_BITS > turn + 1 ? (unsigned)NODE_CLAIM_MASK : 0;
}

/* Count one more piece of [turn], unless [most] pieces are counted already or
 * the turn is over. Returns the count before, or [most] if no piece was
 * counted. The first count of a turn begins it. */
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
