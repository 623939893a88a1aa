/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A checkpoint of N ranks is read by M ranks with the same bits. Tested are
 * whole tensors and parts of ranks (ZeRO), saves from the tensors and from a
 * buffer, manifests of both versions, and shards of one rank and of several.
 * CDDP_LONG=1 tests all N and M up to 16.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt_parts.h"

#define SEED 11
#define RANKS 16

typedef struct way {
    ckpt_deal_t deal;
    int format;
    /* number of shards, to which the ranks are dealt in turns; 0: one for each
     * rank */
    int files;
} way_t;

static void body_save(ckpt_rank_t *rank, void *context)
{
    way_t *way = context;
    int heads[RANKS];

    for (int r = 0; r < RANKS && way->files > 0; r++)
        heads[r] = r % way->files;
    rank->config.format = way->format;
    rank->config.heads = way->files > 0 ? heads : NULL;
    ckpt_parts_write(rank, &way->deal);
}

static void save_by(const char *home, int size, way_t way)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, SEED, body_save, &way);

    for (int r = 0; r < size; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%d ranks: %s", size,
                     ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
}

/* [n] ranks saved a checkpoint: read it with each number of ranks up to 16, or,
 * in the short test, with one or two of these numbers. Returns how many it was.
 */
static int reads(const char *home, int n, int turn)
{
    static const int few[] = {1, 3, 16};
    int cases = 0;

    for (int m = 1; m <= RANKS; m++) {
        const bool all = getenv("CDDP_LONG") != NULL;
        const ckpt_deal_t deal = {.turn = turn, .skip = -1};

        if (!all && m != few[(n + turn) % 3] && m != 17 - n)
            continue;
        ckpt_parts_expect(home, m, SEED, deal);
        cases++;
    }
    return cases;
}

static int saves(int n, way_t way)
{
    static const int turns[] = {0, 13};
    int cases = 0;
    char *home = ckpt_home_make();

    save_by(home, n, way);
    for (int t = 0; t < 2; t++)
        cases += reads(home, n, turns[t]);
    ckpt_home_remove(home);
    return cases;
}

/* ---- ranks that name different tensors ------------------------------------
 */

typedef enum odd { ODD_OPTIMIZER, ODD_NAME, ODDS } odd_t;

/* A rank with an odd number wants only the tensors of the model, or wants a
 * tensor that is not there. */
static void body_odd(ckpt_rank_t *rank, void *context)
{
    hdf5io_tensor_t *tensors = rank->state.tensors;
    const int count = rank->state.count;

    if (rank->votes.rank % 2 == 1 && *(odd_t *)context == ODD_NAME)
        tensors[0].name = "model/elsewhere";
    else if (rank->votes.rank % 2 == 1)
        while (strncmp(tensors[rank->state.count - 1].name, "model/", 6) != 0)
            rank->state.count--;
    ckpt_body_read(rank, NULL);
    rank->state.count = count;
}

Test(checkpoint_ranks, ranks_that_name_different_tensors_are_refused)
{
    static const char *const words[] = {"rank 1 wants 6 of its tensors",
                                        "model/elsewhere"};
    char *home = ckpt_home_make();

    ckpt_write(home, 2, SEED);
    for (odd_t odd = 0; odd < ODDS; odd++)
        for (int size = 2; size <= 5; size++) {
            ckpt_rank_t *ranks =
                ckpt_ranks_run(home, size, SEED, body_odd, &odd);

            for (int r = 0; r < size; r++) {
                cr_expect_eq(ranks[r].code, ERR_CONFIG);
                cr_expect(strstr(ranks[r].err.text, words[odd]), "rank %d: %s",
                          r, ranks[r].err.text);
            }
            ckpt_ranks_free(ranks, size);
        }
    ckpt_home_remove(home);
}

/* ---- all numbers ----------------------------------------------------------
 */

Test(checkpoint_ranks, any_number_reads_what_any_number_wrote)
{
    const int step = getenv("CDDP_LONG") == NULL ? 5 : 1;
    int cases = 0;

    for (int n = 1; n <= RANKS; n += step)
        for (int w = 0; w < 12; w++)
            cases += saves(n, (way_t){.deal = {.turn = (w & 1) != 0 ? 29 : 0,
                                               .skip = -1,
                                               .buffer = (w & 2) != 0},
                                      .format = (w & 4) != 0 ? 1 : 2,
                                      .files = w < 8 ? 0 : 1 + (n + w) % 3});
    fprintf(stderr, "checkpoint_ranks: %d cases\n", cases);
}
