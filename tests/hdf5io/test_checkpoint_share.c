/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a rank writes of a checkpoint: all shares together are the state, and a
 * checkpoint that is written from copies has the same bytes as one that is
 * written from the tensors, whatever happens to the tensors meanwhile.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_share.h"

#define SEED 7
#define BITE 29 /* elements that are copied at once; no run is a multiple */
#define TURN 11 /* consecutive elements of a rank in a divided tensor */
#define PARTS_MAX 64
#define FIRST 6 /* first tensor in parts, if there are any */

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

/* ---- what is in a share -------------------------------------------------- */

/* Each element of each tensor is in the share of one rank. */
Test(checkpoint_share, shares_cover_the_state)
{
    ckpt_state_t state;
    unsigned char seen[CKPT_TENSORS][512];

    ckpt_state_make(&state, SEED);
    for (int size = 1; size <= CKPT_RANKS_MAX; size++) {
        memset(seen, 0, sizeof seen);
        for (int rank = 0; rank < size; rank++) {
            hdf5io_share_t *share = NULL;
            int64_t elems = 0;
            err_t err = ERR_INIT;

            cr_assert_eq(hdf5io_share_open(state.tensors, state.count, rank,
                                           size, &share, &err),
                         ERR_OK, "%s", err.text);
            for (int i = 0; i < hdf5io_share_runs(share); i++) {
                const hdf5io_run_t run = hdf5io_share_run(share, i);

                cr_assert_eq(run.data,
                             state.tensors[run.tensor].data + run.first);
                cr_assert_leq(hdf5io_share_before(share, run.tensor), elems);
                for (int64_t e = run.first; e < run.first + run.count; e++)
                    seen[run.tensor][e]++;
                elems += run.count;
            }
            cr_assert_eq(elems, hdf5io_share_elems(share));
            cr_assert_eq(hdf5io_share_before(share, 0), 0);
            cr_assert_eq(hdf5io_share_before(share, CKPT_TENSORS), elems);
            hdf5io_share_close(share);
        }
        for (int i = 0; i < CKPT_TENSORS; i++)
            for (int64_t e = 0; e < elems_of(&state.tensors[i]); e++)
                cr_assert_eq(seen[i][e], 1, "%d ranks: %s", size,
                             state.tensors[i].name);
    }
    ckpt_state_free(&state);
}

/* ---- writing from a copy ------------------------------------------------- */

/* Divide the optimizer's tensors: TURN elements to each rank in turn. */
static void state_deal(ckpt_rank_t *rank, hdf5io_part_t parts[][PARTS_MAX])
{
    for (int i = FIRST; i < CKPT_TENSORS; i++) {
        hdf5io_tensor_t *tensor = &rank->state.tensors[i];
        const int64_t elems = elems_of(tensor);

        for (int64_t at = 0; at < elems; at += TURN) {
            const int owner = (int)(at / TURN) % rank->votes.size;

            parts[i][tensor->part_count++] = (hdf5io_part_t){
                .rank = owner,
                .first = at,
                .count = elems - at < TURN ? elems - at : TURN,
                .data = owner == rank->votes.rank ? tensor->data + at : NULL};
        }
        tensor->parts = parts[i];
    }
}

static void state_whole(ckpt_rank_t *rank)
{
    for (int i = 0; i < CKPT_TENSORS; i++) {
        rank->state.tensors[i].parts = NULL;
        rank->state.tensors[i].part_count = 0;
    }
}

/* Copy the share in small bites, spoil the tensors, and write the copy. */
static void copy_write(ckpt_rank_t *rank)
{
    hdf5io_share_t *share = NULL;
    int64_t elems;

    rank->code = hdf5io_share_open(rank->state.tensors, rank->state.count,
                                   rank->votes.rank, rank->votes.size, &share,
                                   &rank->err);
    if (rank->code == ERR_OK)
        rank->code = hdf5io_share_buffer(share, &rank->err);
    if (rank->code == ERR_OK) {
        elems = hdf5io_share_elems(share);
        for (int64_t at = 0; at < elems; at += BITE)
            hdf5io_share_copy(share, at, at + BITE < elems ? at + BITE : elems);
        for (int i = 0; i < CKPT_TENSORS; i++)
            memset(rank->state.tensors[i].data, 0xa5,
                   (size_t)elems_of(&rank->state.tensors[i]) * sizeof(float));
        rank->config.share = share;
        ckpt_body_write(rank, NULL);
    }
    hdf5io_share_close(share);
}

typedef struct how {
    bool parts, copy;
} how_t;

static void body(ckpt_rank_t *rank, void *context)
{
    const how_t *how = context;
    hdf5io_part_t parts[CKPT_TENSORS][PARTS_MAX];

    if (how->parts)
        state_deal(rank, parts);
    if (how->copy)
        copy_write(rank);
    else
        ckpt_body_write(rank, NULL);
    state_whole(rank);
}

static char *home_write(int size, how_t how)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, SEED, body, &how);

    for (int r = 0; r < size; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
    return home;
}

/* Have the shards of [rank] in both directories the same bytes? */
static void shard_compare(const char *a, const char *b, int rank)
{
    const char *const homes[] = {a, b};
    char *bytes[2] = {NULL, NULL};
    size_t counts[2] = {0, 0};
    err_t err = ERR_INIT;

    for (int i = 0; i < 2; i++) {
        char *path =
            str_printf("%s/step-%010d/shard-%d.h5", homes[i], SEED, rank);

        cr_assert_eq(file_read(path, &bytes[i], &counts[i], &err), ERR_OK, "%s",
                     err.text);
        free(path);
    }
    cr_assert_eq(counts[0], counts[1]);
    cr_assert_eq(memcmp(bytes[0], bytes[1], counts[0]), 0, "shard %d differs",
                 rank);
    free(bytes[0]);
    free(bytes[1]);
}

Test(checkpoint_share, a_copy_is_written_with_the_same_bytes)
{
    static const int sizes[] = {1, 2, 4};

    for (int i = 0; i < 6; i++) {
        const int size = sizes[i / 2];
        const bool parts = i % 2 == 1;
        char *tensors = home_write(size, (how_t){parts, false});
        char *copies = home_write(size, (how_t){parts, true});

        for (int r = 0; r < size; r++)
            shard_compare(tensors, copies, r);
        ckpt_expect(copies, size, SEED);
        ckpt_home_remove(tensors);
        ckpt_home_remove(copies);
    }
}
