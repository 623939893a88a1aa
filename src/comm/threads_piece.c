/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The arithmetic of a threads group: computes one piece of a collective. */
#include <string.h>

#include "base/check.h"
#include "comm/threads_team.h"

/* Bytes of a piece: large enough that the time of a claim does not matter,
 * small enough that poll, which computes one piece, does not block. */
#define PIECE_BYTES 65536

static size_t piece_elements(const comm_request_t *request)
{
    size_t bytes = PIECE_BYTES;

    /* The number of pieces must fit into the claim word, whatever the size of
     * the data. */
    while (request->count / bytes >> (THREADS_CLAIM_BITS - 4))
        bytes *= 2;
    if (request->kind == COMM_BROADCAST || request->kind == COMM_ALLGATHER)
        return bytes;
    return bytes / comm_type_bytes(request->type);
}

uint32_t threads_piece_count(const comm_request_t *request, int size)
{
    size_t piece;

    if (request->kind == COMM_BARRIER)
        return 0;
    if (request->kind == COMM_ALLGATHER)
        return (uint32_t)size;
    piece = piece_elements(request);
    return (uint32_t)((request->count + piece - 1) / piece);
}

/* Number of elements of [begin, end) within the range of [rank] in [cuts]. Sets
 * *begin to the first of them. */
static size_t range_within(const size_t *cuts, int rank, size_t *begin,
                           size_t end)
{
    size_t first = cuts[rank] > *begin ? cuts[rank] : *begin;
    size_t last = cuts[rank + 1] < end ? cuts[rank + 1] : end;

    *begin = first;
    return first < last ? last - first : 0;
}

/* Store the reduced elements [at, at + count) to all ranks, or to their
 * owners. */
static void block_store(const comm_request_t *requests, int size, size_t at,
                        size_t count, const comm_block_t *block)
{
    comm_type_t type = requests->type;
    size_t width = comm_type_bytes(type);
    _Alignas(64) char sum[COMM_BLOCK_ELEMENTS * sizeof(double)];

    comm_block_end(block, sum, count, type);
    for (int rank = 0; rank < size; rank++) {
        size_t first = at, some = count;

        if (requests->kind == COMM_REDUCE_SCATTER)
            some = range_within(requests->cuts, rank, &first, at + count);
        if (some > 0)
            memcpy((char *)requests[rank].data + first * width,
                   sum + (first - at) * width, some * width);
    }
}

static void piece_reduce(const comm_request_t *requests, int size, size_t begin,
                         size_t end)
{
    const size_t step = COMM_BLOCK_ELEMENTS;
    comm_type_t type = requests->type;
    size_t width = comm_type_bytes(type);
    comm_block_t block;

    for (size_t at = begin; at < end; at += step) {
        size_t count = end - at < step ? end - at : step;

        comm_block_begin(&block, (char *)requests[0].data + at * width, count,
                         type);
        for (int rank = 1; rank < size; rank++)
            comm_block_add(&block, (char *)requests[rank].data + at * width,
                           count, type, requests->op);
        block_store(requests, size, at, count, &block);
    }
}

static void piece_tree(const comm_request_t *requests, int size, size_t begin,
                       size_t end)
{
    size_t width = comm_type_bytes(requests->type);
    size_t offset = begin * width, bytes = (end - begin) * width;
    comm_fold_t fold;
    char *total;

    comm_fold_begin(&fold, requests->leaves, end - begin, requests->type);
    for (int rank = 0; rank < size; rank++) {
        const comm_request_t *request = &requests[rank];

        comm_fold_push_views(&fold, request->first, request->held,
                             request->views, offset);
    }
    total = comm_fold_total(&fold);
    for (int rank = 0; rank < size; rank++)
        if ((char *)requests[rank].data + offset != total)
            memcpy((char *)requests[rank].data + offset, total, bytes);
}

static void piece_broadcast(const comm_request_t *requests, int size,
                            size_t begin, size_t end)
{
    int root = requests->root;

    for (int rank = 0; rank < size; rank++)
        if (rank != root)
            memcpy((char *)requests[rank].data + begin,
                   (char *)requests[root].data + begin, end - begin);
}

static void piece_allgather(const comm_request_t *requests, int size,
                            uint32_t from)
{
    size_t bytes = requests->count;

    for (int rank = 0; rank < size; rank++) {
        char *to = (char *)requests[rank].data + from * bytes;

        if (to != requests[from].mine)
            memcpy(to, requests[from].mine, bytes);
    }
}

static void piece_ranges(const comm_request_t *requests, int size, size_t begin,
                         size_t end)
{
    size_t width = comm_type_bytes(requests->type);

    for (int owner = 0; owner < size; owner++) {
        size_t first = begin;
        size_t some = range_within(requests->cuts, owner, &first, end);

        for (int rank = 0; rank < size && some > 0; rank++)
            if (rank != owner)
                memcpy((char *)requests[rank].data + first * width,
                       (char *)requests[owner].data + first * width,
                       some * width);
    }
}

static void piece_run(const threads_slot_t *slot, int size, uint32_t piece)
{
    const comm_request_t *requests = slot->requests;
    size_t step = piece_elements(requests);
    size_t begin = piece * step;
    size_t end =
        requests->count - begin < step ? requests->count : begin + step;

    check(requests->kind == COMM_ALLGATHER || begin < end,
          "piece %u begins at element %zu of %zu", piece, begin,
          requests->count);
    switch (requests->kind) {
    case COMM_ALLREDUCE:
    case COMM_REDUCE_SCATTER:
        piece_reduce(requests, size, begin, end);
        break;
    case COMM_GATHER_RANGES:
        piece_ranges(requests, size, begin, end);
        break;
    case COMM_TREE:
        piece_tree(requests, size, begin, end);
        break;
    case COMM_BROADCAST:
        piece_broadcast(requests, size, begin, end);
        break;
    case COMM_ALLGATHER:
        piece_allgather(requests, size, piece);
        break;
    case COMM_BARRIER:
        break;
    }
}

static bool piece_claim(threads_slot_t *slot, uint64_t number, uint32_t *piece)
{
    uint64_t claim = atomic_load_explicit(&slot->claim, memory_order_acquire);

    for (;;) {
        uint64_t next = claim & ((UINT64_C(1) << THREADS_CLAIM_BITS) - 1);

        /* A claim word with another number belongs to another collective. The
         * word contains the number of pieces left to claim. */
        if (claim >> THREADS_CLAIM_BITS != number + 1 || next == 0)
            return false;
        if (atomic_compare_exchange_weak_explicit(
                &slot->claim, &claim, claim - 1, memory_order_acq_rel,
                memory_order_acquire)) {
            *piece = (uint32_t)next - 1;
            return true;
        }
    }
}

bool threads_piece_do(threads_team_t *team, uint64_t number)
{
    threads_slot_t *slot = &team->slots[number % COMM_WORKS_MAX];
    bool did = false;
    uint32_t piece;

    /* Register before reading `failed`: team_quiet waits for registered
     * threads. */
    atomic_fetch_add(&team->working, 1);
    if (!atomic_load(&team->failed) && piece_claim(slot, number, &piece)) {
        uint32_t pieces = slot->pieces, done;

        piece_run(slot, team->size, piece);
        did = true;
        done = (uint32_t)atomic_fetch_add(&slot->done, 1) + 1;
        check(piece < pieces && done <= pieces,
              "piece %u of %u, and %u are done", piece, pieces, done);
        if (done == pieces)
            threads_slot_complete(team, slot, number);
    }
    atomic_fetch_sub(&team->working, 1);
    return did;
}
