/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Slots of the node stage: see node_slot.h. */
#include "comm/node/node_slot.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "comm/node/node_bell.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_sum.h"

/* Small enough that all ranks end at about the same time. */
#define PIECE_MOST ((size_t)128 << 10)

static node_slot_t *node_slot(const node_t *node, uint64_t number)
{
    return (node_slot_t *)(void *)(node->board->slots +
                                   number % COMM_WORKS_MAX * node->stride);
}

/* ---- post ---------------------------------------------------------------- */

const node_arena_t *node_slot_arena(const node_t *node, const void *data,
                                    size_t bytes)
{
    uintptr_t at = (uintptr_t)data;

    for (uint32_t i = 0; i < node->arenas_opened; i++) {
        const node_arena_t *arena = node->arenas[i];
        uintptr_t begin = arena == NULL ? 0 : (uintptr_t)arena->data;

        if (arena != NULL && at >= begin && at + bytes <= begin + arena->bytes)
            return arena;
    }
    return NULL;
}

/* Do all posts of the node ask for the same? */
static bool slot_agrees(const node_t *node, const node_slot_t *slot)
{
    const node_post_t *first = &slot->entries[0].post;

    for (int i = 1; i < node->place.count; i++) {
        const node_post_t *post = &slot->entries[i].post;

        if (post->count != first->count || post->cuts != first->cuts ||
            post->kind != first->kind || post->type != first->type ||
            post->op != first->op)
            return false;
    }
    return true;
}

/* Have all ranks posted? */
static bool slot_came(const node_t *node, const node_slot_t *slot,
                      uint64_t number)
{
    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&slot->entries[i].post.came,
                                 memory_order_acquire) <= number)
            return false;
    return true;
}

/* All find out. */
static void slot_disagrees(node_t *node, node_slot_t *slot, uint64_t number)
{
    atomic_store(&slot->odd, number + 1);
    node_ring(node);
}

/* The slices are the comm threads' business. */
static void slot_open(node_t *node, node_slot_t *slot, const node_work_t *work)
{
    uint64_t number = work->number;

    check(atomic_load(&slot->arrived) == (unsigned)node->place.count,
          "slot of %llu opens with %u of %d ranks", (unsigned long long)number,
          atomic_load(&slot->arrived), node->place.count);
    check(atomic_load(&slot->opened) <= number, "slot of %llu opens for %llu",
          (unsigned long long)atomic_load(&slot->opened) - 1,
          (unsigned long long)number);
    atomic_store(&slot->arrived, 0);
    if (!slot_agrees(node, slot)) {
        slot_disagrees(node, slot, number);
        return;
    }
    slot->lanes = (uint32_t)work->split.lanes;
    atomic_store(&slot->done, 0);
    atomic_store(&slot->opened, number + 1);
    for (int i = 0; i < work->split.owners; i++)
        if (i != node->place.local)
            node_bell_ring(node, i);
}

static void post_fill(const node_t *node, const comm_request_t *request,
                      node_post_t *post)
{
    const node_arena_t *arena =
        node_slot_arena(node, request->data, comm_request_bytes(request));

    post->count = request->count;
    post->cuts =
        request->cuts == NULL
            ? 0
            : hash_bytes(request->cuts, ((size_t)node->config.size + 1) *
                                            sizeof *request->cuts);
    post->kind = (uint16_t)request->kind;
    post->type = (uint16_t)request->type;
    post->op = (uint16_t)request->op;
    post->arena = arena->number;
    post->offset = (uint64_t)((char *)request->data - (char *)arena->data);
}

static unsigned pieces_of(const node_t *node, size_t bytes, size_t *piece)
{
    *piece = node_piece_bytes(bytes, node->place.count, PIECE_MOST);
    return (unsigned)((bytes + *piece - 1) / *piece);
}

void node_slot_start(node_t *node, node_work_t *work)
{
    const comm_request_t *what = work->request;
    uint64_t number = work->number;
    node_slot_t *slot = node_slot(node, number);
    node_post_t *post = &slot->entries[node->place.local].post;
    size_t step;

    check(atomic_load(&post->came) <= number,
          "collective %llu posts in a slot of number %llu",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&post->came) - 1);
    post_fill(node, what, post);
    atomic_store_explicit(&work->pieces,
                          pieces_of(node, comm_request_bytes(what), &step),
                          memory_order_relaxed);
    atomic_store_explicit(&post->came, number + 1, memory_order_release);
    if (node->place.nodes == 1) {
        atomic_thread_fence(memory_order_seq_cst); /* the last sees all */
        if (slot_came(node, slot, number))
            node_ring(node);
    } else if (atomic_fetch_add(&slot->arrived, 1) + 1 ==
               (unsigned)node->place.count) {
        slot_open(node, slot, work);
    }
}

void node_slot_foresee(node_t *node, uint64_t number)
{
    node_entry_t *mine = &node_slot(node, number)->entries[node->place.local];

    node_lines_own((const char *)mine, sizeof *mine);
}

bool node_slot_odd(const node_t *node, uint64_t number)
{
    return atomic_load(&node_slot(node, number)->odd) == number + 1;
}

void node_slot_check(node_t *node, uint64_t number)
{
    if (node_slot_odd(node, number))
        node_board_disagree(node, number);
}

/* ---- pieces -------------------------------------------------------------- */

/* How many of [pieces], dealt out to the ranks in turn, rank [local] gets. */
static unsigned share_of(const node_t *node, unsigned pieces, int local)
{
    unsigned count = (unsigned)node->place.count;

    return (pieces + count - 1 - (unsigned)local) / count;
}

/* A piece of the share of [local]. Of each share the last one comes first: its
 * owner may have written it last, and then it is in a cache. */
static bool share_claim(node_t *node, uint64_t number, int local,
                        unsigned pieces, unsigned *piece)
{
    node_share_t *share = &node_slot(node, number)->entries[local].share;
    unsigned most = share_of(node, pieces, local);
    unsigned had = most == 0 ? 0 : node_count_up(&share->claimed, number, most);

    if (had >= most)
        return false;
    *piece = (most - 1 - had) * (unsigned)node->place.count + (unsigned)local;
    check(*piece < pieces, "piece %u of %u, of the share of rank %d", *piece,
          pieces, local);
    return true;
}

void node_slot_parts(node_t *node, uint64_t number, char **parts)
{
    const node_slot_t *slot = node_slot(node, number);

    for (int i = 0; i < node->place.count; i++) {
        const node_post_t *post = &slot->entries[i].post;

        check(atomic_load(&post->came) == number + 1,
              "the post of rank %d is of number %llu, not %llu", i,
              (unsigned long long)atomic_load(&post->came) - 1,
              (unsigned long long)number);
        check(post->arena < node->arenas_opened &&
                  post->offset < node->arenas[post->arena]->bytes,
              "rank %d posts byte %llu of arena %u of %u", i,
              (unsigned long long)post->offset, post->arena,
              node->arenas_opened);
        parts[i] = (char *)node->arenas[post->arena]->maps[i] + post->offset;
    }
}

/* [count] elements from [begin] on lie at [parts]: of each range what lies
 * among them, summed to its owner, or from its owner to all others. On one node
 * ranks are numbered as in the group. */
static void ranges_run(const comm_request_t *what, char *const *parts, int size,
                       size_t begin, size_t count)
{
    size_t width = comm_type_bytes(what->type);
    const size_t *cuts = what->cuts;

    for (int owner = 0; owner < size; owner++) {
        size_t first = cuts[owner] > begin ? cuts[owner] : begin;
        size_t last =
            cuts[owner + 1] < begin + count ? cuts[owner + 1] : begin + count;
        size_t at = (first - begin) * width;

        if (first >= last)
            continue;
        if (what->kind == COMM_REDUCE_SCATTER)
            node_sum_part(parts, size, at, last - first, what->type, what->op,
                          parts[owner]);
        for (int i = 0; what->kind == COMM_GATHER_RANGES && i < size; i++)
            if (i != owner)
                memcpy(parts[i] + at, parts[owner] + at,
                       (last - first) * width);
    }
}

/* Under node.lock. */
static void piece_run(node_t *node, const node_work_t *work, size_t begin,
                      size_t bytes)
{
    const comm_request_t *what = work->request;
    size_t width = comm_type_bytes(what->type);
    char **parts = node->parts;

    node_slot_parts(node, work->number, parts);
    for (int i = 0; i < node->place.count; i++)
        parts[i] += begin;
    if (what->kind == COMM_ALLREDUCE)
        node_sum(parts, node->place.count, bytes / width, what->type, what->op);
    else
        ranges_run(what, parts, node->place.count, begin / width,
                   bytes / width);
}

static bool shares_done(const node_t *node, uint64_t number, unsigned pieces)
{
    const node_slot_t *slot = node_slot(node, number);

    for (int i = 0; i < node->place.count; i++)
        if (node_counted(&slot->entries[i].share.done, number) <
            share_of(node, pieces, i))
            return false;
    return true;
}

bool node_slot_done(const node_t *node, const node_work_t *work,
                    uint64_t number)
{
    return shares_done(
        node, number,
        atomic_load_explicit(&work->pieces, memory_order_relaxed));
}

/* Of the share of [local]; false: none is left. Under node.lock. */
static bool piece_do(node_t *node, node_work_t *work, int local)
{
    uint64_t number = work->number;
    node_slot_t *slot = node_slot(node, number);
    node_share_t *share = &slot->entries[local].share;
    size_t bytes = comm_request_bytes(work->request);
    size_t step, begin;
    unsigned pieces = pieces_of(node, bytes, &step), piece;

    if (!share_claim(node, number, local, pieces, &piece))
        return false;
    if (!slot_agrees(node, slot)) { /* the claim keeps all posts in place */
        slot_disagrees(node, slot, number);
        return false;
    }
    begin = piece * step;
    piece_run(node, work, begin, bytes - begin < step ? bytes - begin : step);
    if (node_count_up(&share->done, number, pieces) + 1 ==
        share_of(node, pieces, local)) {
        atomic_thread_fence(memory_order_seq_cst); /* the last sees all */
        if (shares_done(node, number, pieces))
            node_ring(node);
    }
    return true;
}

bool node_slot_go(node_t *node, node_work_t *work)
{
    uint64_t number = work->number;
    bool did = false;

    node_lock(node);
    if (!node_failed(node) && slot_came(node, node_slot(node, number), number))
        for (int i = 0; !did && i < node->place.count; i++)
            did = piece_do(node, work,
                           (node->place.local + i) % node->place.count);
    node_unlock(node);
    if (node_slot_done(node, work, number))
        atomic_store_explicit(&work->done, true, memory_order_release);
    return did;
}

bool node_slot_ready(const node_t *node, const node_work_t *work)
{
    const node_slot_t *slot = node_slot(node, work->number);
    unsigned pieces = atomic_load_explicit(&work->pieces, memory_order_relaxed);

    if (!slot_came(node, slot, work->number))
        return false;
    for (int i = 0; i < node->place.count; i++)
        if (node_counted(&slot->entries[i].share.claimed, work->number) <
            share_of(node, pieces, i))
            return true;
    return shares_done(node, work->number, pieces);
}

/* ---- several nodes ------------------------------------------------------- */

bool node_slot_opened(node_t *node, uint64_t number)
{
    const node_slot_t *slot = node_slot(node, number);

    node_slot_check(node, number);
    return atomic_load(&slot->opened) == number + 1;
}

void node_slot_lane_add(node_t *node, uint64_t number)
{
    node_slot_t *slot = node_slot(node, number);
    uint32_t lanes = slot->lanes; /* may be another's after the last one */

    if (atomic_fetch_add(&slot->done, 1) + 1 == lanes) {
        atomic_store(&slot->completed, number + 1);
        node_ring(node);
    }
}

bool node_slot_lanes_done(const node_t *node, uint64_t number)
{
    return atomic_load(&node_slot(node, number)->completed) > number;
}
