/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The window through which each rank passes bytes to all ranks. */
#include "hdf5io/checkpoint_window.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ckpt_fixture.h"

#define RANKS 3
#define EACH ((size_t)1 << 20)
#define EXCHANGES 6

static char value_of(int rank, int exchange)
{
    return (char)(10 * rank + exchange + 1);
}

/* Rank r passes r + 1 units of bytes. */
static void cuts_set(size_t *cuts)
{
    for (size_t r = 0; r < RANKS; r++)
        cuts[r + 1] = cuts[r] + (r + 1) * HDF5IO_SPREAD_ALIGN;
}

static void slot_fill(const hdf5io_window_t *window, int rank, int exchange)
{
    memset(hdf5io_window_slot(window), value_of(rank, exchange),
           window->cuts[rank + 1] - window->cuts[rank]);
}

/* Number of bytes of [rank] that differ from those that slot_fill wrote for
 * [exchange]. */
static int wrong(const hdf5io_window_t *window, int rank, int exchange)
{
    const char *bytes = hdf5io_window_bytes(window, rank);
    const size_t count = window->cuts[rank + 1] - window->cuts[rank];
    int odd = 0;

    for (size_t i = 0; i < count; i++)
        odd += bytes[i] != value_of(rank, exchange);
    return odd;
}

/* Open the window, and share its memory with all ranks. */
static void window_open(ckpt_rank_t *rank, hdf5io_spread_t *spread,
                        hdf5io_window_t *out)
{
    rank->code = hdf5io_spread_open(&rank->votes, spread, &rank->err);
    if (rank->code == ERR_OK)
        rank->code = hdf5io_window_open(spread, EACH, out, &rank->err);
    if (rank->code == ERR_OK)
        rank->code = hdf5io_window_share(out, &rank->err);
}

/* Each rank fills its slot for the next exchange before it compares the bytes
 * of the last exchange. Meanwhile other ranks may fill their slots, too. */
static void body_exchange(ckpt_rank_t *rank, void *context)
{
    hdf5io_spread_t spread;
    hdf5io_window_t window;
    int *odd = context;

    window_open(rank, &spread, &window);
    for (int e = 0; rank->code == ERR_OK && e < EXCHANGES; e++) {
        cuts_set(window.cuts);
        slot_fill(&window, rank->votes.rank, e);
        rank->code = hdf5io_window_exchange(&window, &rank->err);
        if (ckpt_together)
            slot_fill(&window, rank->votes.rank, e + 1);
        for (int r = 0; rank->code == ERR_OK && r < RANKS; r++)
            odd[rank->votes.rank] += wrong(&window, r, e);
    }
    hdf5io_window_close(&window);
    hdf5io_spread_close(&spread);
}

Test(checkpoint_window, passes_bytes_to_all_ranks)
{
    for (int together = 0; together < 2; together++) {
        int odd[RANKS] = {0};
        ckpt_rank_t *ranks;

        ckpt_together = together == 1;
        ranks = ckpt_ranks_run("/", RANKS, 1, body_exchange, odd);
        for (int r = 0; r < RANKS; r++) {
            cr_expect_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
            cr_expect_eq(odd[r], 0, "rank %d, together %d", r, together);
        }
        ckpt_ranks_free(ranks, RANKS);
    }
}

/* Rank 0, which has allocated the shared memory, closes its window while other
 * ranks still read from this memory. */
static void body_leave(ckpt_rank_t *rank, void *context)
{
    hdf5io_votes_t *votes = &rank->votes;
    hdf5io_spread_t spread;
    hdf5io_window_t window;
    int *odd = context, mine = 0, all[RANKS];

    window_open(rank, &spread, &window);
    cuts_set(window.cuts);
    slot_fill(&window, votes->rank, 0);
    rank->code = hdf5io_window_exchange(&window, &rank->err);
    if (votes->rank == 0)
        hdf5io_window_close(&window);
    votes->exchange(votes->context, &mine, sizeof mine, all, NULL);
    if (votes->rank != 0) {
        odd[votes->rank] = wrong(&window, 0, 0);
        hdf5io_window_close(&window);
    }
    hdf5io_spread_close(&spread);
}

Test(checkpoint_window, the_last_rank_frees_the_shared_memory)
{
    int odd[RANKS] = {0};
    ckpt_rank_t *ranks;

    ckpt_together = true;
    ranks = ckpt_ranks_run("/", RANKS, 1, body_leave, odd);
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(odd[r], 0, "rank %d", r);
    ckpt_ranks_free(ranks, RANKS);
}
