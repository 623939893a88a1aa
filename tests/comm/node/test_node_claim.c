/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Pieces of work that threads claim (src/comm/node/node_claim.h). */
#include <criterion/criterion.h>
#include <pthread.h>

#include "comm/node/node_claim.h"

TestSuite(node_claim, .timeout = 120);

/* ---- counters ------------------------------------------------------------ */

Test(node_claim, a_counter_goes_from_turn_to_turn)
{
    static node_counter_t counter;

    cr_assert_eq(node_counted(&counter, 0), 0);
    cr_assert_eq(node_count_up(&counter, 5, 2), 0);
    cr_assert_eq(node_count_up(&counter, 5, 2), 1);
    cr_assert_eq(node_count_up(&counter, 5, 2), 2, "there are only two");
    cr_assert_eq(node_counted(&counter, 5), 2);
    cr_assert_eq(node_counted(&counter, 6), 0);
    cr_assert_gt(node_counted(&counter, 4), 1000000, "an old turn is over");
    cr_assert_eq(node_count_up(&counter, 261, 7), 0, "the next turn");
    cr_assert_eq(node_count_up(&counter, 5, 2), 2, "a late claim fails");
    cr_assert_eq(node_counted(&counter, 261), 1, "and leaves no trace");
}

Test(node_claim, pieces_suit_the_buffer)
{
    const size_t most = (size_t)128 << 10;

    cr_assert_eq(node_piece_bytes(16 << 10, 2, most), 8 << 10);
    cr_assert_eq(node_piece_bytes(100, 2, most), NODE_PIECE_LEAST);
    cr_assert_eq(node_piece_bytes(1 << 20, 2, most), most);
    cr_assert_eq(node_piece_bytes(10001, 2, most) % MEM_ALIGN, 0);
    for (size_t bytes = 1; bytes < SIZE_MAX / 2; bytes *= 3)
        cr_assert_lt(bytes / node_piece_bytes(bytes, 7, most),
                     NODE_CLAIM_MASK / 2, "%zu bytes", bytes);
}

#define THREADS 4
#define TURNS 300
#define PIECES 50

static node_counter_t claimed, finished;
static atomic_int taken[TURNS][PIECES];

static void *claim_all(void *unused)
{
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        unsigned piece;

        while ((piece = node_count_up(&claimed, turn, PIECES)) < PIECES) {
            atomic_fetch_add(&taken[turn][piece], 1);
            node_count_up(&finished, turn, PIECES);
        }
        while (node_counted(&finished, turn) < PIECES)
            continue;
    }
    return unused;
}

Test(node_claim, every_piece_is_claimed_once)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, claim_all, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int turn = 0; turn < TURNS; turn++)
        for (int piece = 0; piece < PIECES; piece++)
            cr_assert_eq(atomic_load(&taken[turn][piece]), 1);
}
