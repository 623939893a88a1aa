/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ckpt_parts.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5io/checkpoint_share.h"

#define PARTS_MAX 64 /* of a tensor */
#define SPOILT 7.5f
#define FIRST 6 /* first of the optimizer's tensors, which are in parts */

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

static int owner_of(const ckpt_deal_t *deal, int size, int64_t first)
{
    int rank = (int)(first / deal->turn) % size;

    return rank == deal->skip ? (rank + 1) % size : rank;
}

/* Divide [tensor] into parts; elements that this rank does not own are
 * overwritten. */
static void tensor_deal(const ckpt_deal_t *deal, const ckpt_rank_t *rank,
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

static void state_deal(const ckpt_deal_t *deal, ckpt_rank_t *rank,
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

/* Copy what [rank] writes to a buffer, and change the tensors. */
static void share_take(ckpt_rank_t *rank, hdf5io_share_t **out)
{
    hdf5io_share_t *share = NULL;

    if (hdf5io_share_open(rank->state.tensors, rank->state.count,
                          rank->votes.rank, rank->votes.size, &share,
                          &rank->err) != ERR_OK ||
        hdf5io_share_buffer(share, &rank->err) != ERR_OK)
        abort();
    hdf5io_share_copy(share, 0, hdf5io_share_elems(share));
    rank->config.share = share;
    *out = share;
}

void ckpt_parts_write(ckpt_rank_t *rank, void *context)
{
    const ckpt_deal_t *deal = context;
    hdf5io_part_t parts[CKPT_TENSORS][PARTS_MAX];
    float *data[CKPT_TENSORS];
    hdf5io_share_t *share = NULL;

    rank->config.io = NULL;
    state_deal(deal, rank, parts, data);
    if (deal->buffer) {
        share_take(rank, &share);
        for (int i = 0; i < CKPT_TENSORS; i++)
            memset(data[i], 0x55,
                   (size_t)elems_of(&rank->state.tensors[i]) * sizeof(float));
    }
    ckpt_body_write(rank, NULL);
    hdf5io_share_close(share);
    state_whole(rank, data);
}

/* ckpt_body_read is not used: it would clear the state when the tensors are in
 * parts, which have no data. */
void ckpt_parts_read(ckpt_rank_t *rank, void *context)
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

static void ranks_expect(const ckpt_rank_t *ranks, int size,
                         const ckpt_deal_t *deal, const ckpt_state_t *want)
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

void ckpt_parts_save(const char *home, int size, int64_t seed, ckpt_deal_t deal)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, size, seed, ckpt_parts_write, &deal);

    for (int r = 0; r < size; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
}

void ckpt_parts_expect(const char *home, int size, int64_t seed,
                       ckpt_deal_t deal)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, size, seed, ckpt_parts_read, &deal);
    ckpt_state_t want;

    ckpt_state_make(&want, seed);
    ranks_expect(ranks, size, &deal, &want);
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, size);
}
