/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Tensors that are divided into parts on the ranks: written by their owners,
 * shown as a whole, and read by any number of ranks, with any parts or whole.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ckpt_fixture.h"

#define PARTS_MAX 64
#define SPOILT 7.5f
#define FIRST 6 /* first tensor in parts; these are the optimizer's */

/* How elements are divided: [turn] consecutive elements to each rank in turn,
 * so that a rank has several parts of a tensor; 0: all tensors are whole. */
typedef struct deal {
    int turn;
    int skip; /* a rank that gets no elements, -1: none */
} deal_t;

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

static int owner_of(const deal_t *deal, int size, int64_t first)
{
    int rank = (int)(first / deal->turn) % size;

    return rank == deal->skip ? (rank + 1) % size : rank;
}

/* Divide [tensor] into parts; elements that this rank does not own are
 * overwritten. */
static void tensor_deal(const deal_t *deal, const ckpt_rank_t *rank,
                        hdf5io_tensor_t *tensor, hdf5io_part_t *parts)
{
    int64_t elems = elems_of(tensor);

    for (int64_t first = 0; first < elems; first += deal->turn) {
        int owner = owner_of(deal, rank->votes.size, first);
        int64_t left = elems - first;
        bool mine = owner == rank->votes.rank;
        int64_t count = left < deal->turn ? left : deal->turn;

        parts[tensor->part_count++] =
            (hdf5io_part_t){.rank = owner,
                            .first = first,
                            .count = count,
                            .data = mine ? tensor->data + first : NULL};
        for (int64_t e = first; !mine && e < first + count; e++)
            tensor->data[e] = SPOILT;
    }
    tensor->parts = parts;
    tensor->data = NULL;
}

static void state_deal(const deal_t *deal, ckpt_rank_t *rank,
                       hdf5io_part_t parts[][PARTS_MAX],
                       float *data[CKPT_TENSORS])
{
    for (int i = 0; i < CKPT_TENSORS; i++) {
        data[i] = rank->state.tensors[i].data;
        if (i >= FIRST && deal->turn > 0)
            tensor_deal(deal, rank, &rank->state.tensors[i], parts[i]);
    }
}

static void state_whole(ckpt_rank_t *rank, float *data[CKPT_TENSORS])
{
    for (int i = 0; i < CKPT_TENSORS; i++) {
        rank->state.tensors[i].data = data[i];
        rank->state.tensors[i].parts = NULL;
        rank->state.tensors[i].part_count = 0;
    }
}

static void body_write(ckpt_rank_t *rank, void *context)
{
    hdf5io_part_t parts[CKPT_TENSORS][PARTS_MAX];
    float *data[CKPT_TENSORS];

    state_deal(context, rank, parts, data);
    ckpt_body_write(rank, NULL);
    state_whole(rank, data);
}

/* ckpt_body_read, which knows no parts, is not used here, so the state is not
 * cleared. */
static void body_read(ckpt_rank_t *rank, void *context)
{
    hdf5io_part_t parts[CKPT_TENSORS][PARTS_MAX];
    float *data[CKPT_TENSORS];

    ckpt_state_clear(&rank->state);
    state_deal(context, rank, parts, data);
    rank->code = hdf5io_checkpoint_read(&rank->config, NULL,
                                        rank->state.tensors, rank->state.count,
                                        &rank->found, &rank->info, &rank->err);
    state_whole(rank, data);
}

static void ranks_expect(const ckpt_rank_t *ranks, int size, const deal_t *deal,
                         const ckpt_state_t *want)
{
    for (int r = 0; r < size; r++) {
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
        cr_assert(ranks[r].found);
        for (int i = 0; i < CKPT_TENSORS; i++) {
            const float *have = ranks[r].state.tensors[i].data;

            for (int64_t e = 0; e < elems_of(&want->tensors[i]); e++) {
                int64_t first =
                    deal->turn > 0 ? e / deal->turn * deal->turn : 0;
                bool mine = i < FIRST || deal->turn == 0 ||
                            owner_of(deal, size, first) == r;
                float spoilt = SPOILT;

                cr_assert_eq(memcmp(&have[e],
                                    mine ? &want->tensors[i].data[e] : &spoilt,
                                    sizeof *have),
                             0, "%s[%lld] of rank %d", want->tensors[i].name,
                             (long long)e, r);
            }
        }
    }
}

static void write_by(const char *home, int size, deal_t deal)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, 11, body_write, &deal);

    for (int r = 0; r < size; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
}

static void expect_by(const char *home, int size, deal_t deal)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, 11, body_read, &deal);
    ckpt_state_t want;

    ckpt_state_make(&want, 11);
    ranks_expect(ranks, size, &deal, &want);
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, size);
}

Test(checkpoint_parts, come_back_in_other_parts_on_other_ranks)
{
    static const deal_t deals[] = {
        {0, -1}, {400, -1}, {37, -1}, {8, -1}, {50, 1}};
    const int count = sizeof deals / sizeof deals[0];

    for (int w = 0; w < count; w++) {
        char *home = ckpt_home_make();

        write_by(home, 1 + w, deals[w]);
        for (int r = 0; r < count; r++)
            for (int size = 2; size <= 4; size++)
                expect_by(home, size, deals[r]);
        ckpt_home_remove(home);
    }
}

/* Read checkpoint.h5 with plain HDF5 calls and compare it with [want]. */
static void view_expect(const char *home, const ckpt_state_t *want, int i)
{
    const hdf5io_tensor_t *tensor = &want->tensors[i];
    char *path = str_printf("%s/step-%010d/checkpoint.h5", home, 11);
    size_t bytes = (size_t)elems_of(tensor) * sizeof(float);
    float *have = malloc(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, tensor->name, H5P_DEFAULT);

    cr_assert_geq(dataset, 0, "%s", path);
    cr_assert_geq(
        H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, have),
        0);
    cr_expect_arr_eq(have, tensor->data, bytes, "%s", tensor->name);
    H5Dclose(dataset);
    H5Fclose(file);
    free(have);
    free(path);
}

Test(checkpoint_parts, are_shown_whole)
{
    char *home = ckpt_home_make();
    ckpt_state_t want;

    write_by(home, 3, (deal_t){.turn = 7, .skip = -1});
    ckpt_state_make(&want, 11);
    view_expect(home, &want, 5);
    view_expect(home, &want, 6);
    view_expect(home, &want, 7);
    ckpt_state_free(&want);
    ckpt_home_remove(home);
}
