/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Zero-copy collectives: see node_zcopy.h. */
#include "comm/node/node_zcopy.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "comm/node/node_control.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_wakeup.h"

/* Maximum bytes of a piece: small enough that all ranks end at about the same
 * time. */
#define PIECE_MOST ((size_t)128 << 10)

static zcopy_slot_t *slot_of(const node_t *node, uint64_t number)
{
    return (zcopy_slot_t *)(void *)(node->control->slots +
                                    number % COMM_WORKS_MAX * node->stride);
}

/* ---- post ---------------------------------------------------------------- */

const node_arena_t *node_zcopy_arena(const node_t *node, const void *data,
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

/* Return whether all posts of the node request the same operation. */
static bool posts_agree(const node_t *node, const zcopy_slot_t *slot)
{
    const zcopy_post_t *first = &slot->entries[0].post;

    for (int i = 1; i < node->place.count; i++) {
        const zcopy_post_t *post = &slot->entries[i].post;

        if (post->count != first->count || post->cuts != first->cuts ||
            post->kind != first->kind || post->type != first->type ||
            post->op != first->op)
            return false;
    }
    return true;
}

/* Return whether all ranks have posted [number]. */
static bool all_posted(const node_t *node, const zcopy_slot_t *slot,
                       uint64_t number)
{
    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&slot->entries[i].post.posted,
                                 memory_order_acquire) <= number)
            return false;
    return true;
}

/* Tell all ranks of the node that the posts differ. */
static void posts_differ(node_t *node, zcopy_slot_t *slot, uint64_t number)
{
    atomic_store(&slot->differs, number + 1);
    node_notify(node);
}

/* With several nodes: mark the slot as complete, as this rank was the last one
 * to post. From now on the comm threads of the slices' owners do the work. */
static void slot_complete(node_t *node, zcopy_slot_t *slot,
                          const node_work_t *work)
{
    uint64_t number = work->number;

    check(atomic_load(&slot->arrived) == (unsigned)node->place.count,
          "slot of %llu is complete with %u of %d ranks",
          (unsigned long long)number, atomic_load(&slot->arrived),
          node->place.count);
    check(atomic_load(&slot->complete) <= number,
          "slot of %llu is completed for %llu",
          (unsigned long long)atomic_load(&slot->complete) - 1,
          (unsigned long long)number);
    check(atomic_load(&slot->lanes_done) == slot->lanes,
          "slot of %llu is used again with %u of %u lanes done",
          (unsigned long long)number, atomic_load(&slot->lanes_done),
          slot->lanes);
    atomic_store(&slot->arrived, 0);
    if (!posts_agree(node, slot)) {
        posts_differ(node, slot, number);
        return;
    }
    slot->lanes = (uint32_t)work->split.lanes;
    atomic_store(&slot->lanes_done, 0);
    atomic_store(&slot->complete, number + 1);
    for (int i = 0; i < work->split.owners; i++)
        if (i != node->place.local)
            node_wakeup_send(node, i);
}

static void post_fill(const node_t *node, const comm_request_t *request,
                      zcopy_post_t *post)
{
    const node_arena_t *arena =
        node_zcopy_arena(node, request->data, comm_request_bytes(request));

    check(arena != NULL, "%zu bytes at %p are in none of %u arenas",
          comm_request_bytes(request), request->data, node->arenas_opened);
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

/* The number of pieces of [bytes] bytes; *piece is set to the bytes of a
 * piece. */
static unsigned pieces_of(const node_t *node, size_t bytes, size_t *piece)
{
    *piece = node_piece_bytes(bytes, node->place.count, PIECE_MOST);
    return (unsigned)((bytes + *piece - 1) / *piece);
}

void node_zcopy_start(node_t *node, node_work_t *work)
{
    const comm_request_t *request = work->request;
    uint64_t number = work->number;
    zcopy_slot_t *slot = slot_of(node, number);
    zcopy_post_t *post = &slot->entries[node->place.local].post;
    size_t step;

    check(atomic_load(&post->posted) <= number,
          "collective %llu posts in a slot of number %llu",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&post->posted) - 1);
    post_fill(node, request, post);
    atomic_store_explicit(&work->pieces,
                          pieces_of(node, comm_request_bytes(request), &step),
                          memory_order_relaxed);
    atomic_store_explicit(&post->posted, number + 1, memory_order_release);
    if (node->place.nodes == 1) {
        /* Pairs with the fences of the others: the last one sees all posts. */
        atomic_thread_fence(memory_order_seq_cst);
        if (all_posted(node, slot, number))
            node_notify(node);
    } else if (atomic_fetch_add(&slot->arrived, 1) + 1 ==
               (unsigned)node->place.count) {
        slot_complete(node, slot, work);
    }
}

void node_zcopy_prefetch(node_t *node, uint64_t number)
{
    zcopy_entry_t *mine = &slot_of(node, number)->entries[node->place.local];

    node_prefetch_write((const char *)mine, sizeof *mine);
}

bool node_zcopy_differs(const node_t *node, uint64_t number)
{
    return atomic_load(&slot_of(node, number)->differs) == number + 1;
}

void node_zcopy_check(node_t *node, uint64_t number)
{
    if (node_zcopy_differs(node, number))
        node_control_differ(node, number);
}

/* ---- pieces -------------------------------------------------------------- */

/* Number of pieces of rank [local], if [pieces] pieces are dealt to the ranks
 * in turn. */
static unsigned share_of(const node_t *node, unsigned pieces, int local)
{
    unsigned count = (unsigned)node->place.count;

    return (pieces + count - 1 - (unsigned)local) / count;
}

/* Claim a piece of the share of [local]. The last piece of a share is claimed
 * first: the rank may have written it last, and then it is in a cache. */
static bool share_claim(node_t *node, uint64_t number, int local,
                        unsigned pieces, unsigned *piece)
{
    zcopy_share_t *share = &slot_of(node, number)->entries[local].share;
    unsigned most = share_of(node, pieces, local);
    unsigned had = most == 0 ? 0 : node_count_up(&share->claimed, number, most);

    if (had >= most)
        return false;
    *piece = (most - 1 - had) * (unsigned)node->place.count + (unsigned)local;
    check(*piece < pieces, "piece %u of %u, of the share of rank %d", *piece,
          pieces, local);
    return true;
}

void node_zcopy_buffers(node_t *node, uint64_t number, char **buffers)
{
    const zcopy_slot_t *slot = slot_of(node, number);

    for (int i = 0; i < node->place.count; i++) {
        const zcopy_post_t *post = &slot->entries[i].post;
        const node_arena_t *arena;

        check(atomic_load(&post->posted) == number + 1,
              "the post of rank %d is of number %llu, not %llu", i,
              (unsigned long long)atomic_load(&post->posted) - 1,
              (unsigned long long)number);
        check(post->arena < node->arenas_opened &&
                  node->arenas[post->arena] != NULL,
              "rank %d posts arena %u of %u", i, post->arena,
              node->arenas_opened);
        arena = node->arenas[post->arena];
        check(post->offset < arena->bytes,
              "rank %d posts byte %llu of arena %u of %zu bytes", i,
              (unsigned long long)post->offset, post->arena, arena->bytes);
        buffers[i] = (char *)arena->maps[i] + post->offset;
    }
}

/* Reduce or gather [count] elements from element [begin] on, which are at
 * [buffers]. Elements of a range are summed to the buffer of the range's owner,
 * or copied from there to all other buffers. On one node ranks have the numbers
 * of the group. */
static void ranges_run(const comm_request_t *request, char *const *buffers,
                       int size, size_t begin, size_t count)
{
    size_t width = comm_type_bytes(request->type);
    const size_t *cuts = request->cuts;

    for (int owner = 0; owner < size; owner++) {
        size_t first = cuts[owner] > begin ? cuts[owner] : begin;
        size_t last =
            cuts[owner + 1] < begin + count ? cuts[owner + 1] : begin + count;
        size_t at = (first - begin) * width;

        if (first >= last)
            continue;
        if (request->kind == COMM_REDUCE_SCATTER)
            node_sum_part(buffers, size, at, last - first, request->type,
                          request->op, buffers[owner]);
        for (int i = 0; request->kind == COMM_GATHER_RANGES && i < size; i++)
            if (i != owner)
                memcpy(buffers[i] + at, buffers[owner] + at,
                       (last - first) * width);
    }
}

/* Compute [bytes] bytes from byte [begin] on. Under node.lock. */
static void piece_run(node_t *node, const node_work_t *work, size_t begin,
                      size_t bytes)
{
    const comm_request_t *request = work->request;
    size_t width = comm_type_bytes(request->type);
    char **buffers = node->buffers;

    check(node_is_locked(node), "a piece of %llu is computed without the lock",
          (unsigned long long)work->number);
    check(begin + bytes <= comm_request_bytes(request) && bytes % width == 0,
          "a piece of %zu bytes at %zu of %zu", bytes, begin,
          comm_request_bytes(request));
    node_zcopy_buffers(node, work->number, buffers);
    for (int i = 0; i < node->place.count; i++)
        buffers[i] += begin;
    if (request->kind == COMM_ALLREDUCE)
        node_sum(buffers, node->place.count, bytes / width, request->type,
                 request->op);
    else
        ranges_run(request, buffers, node->place.count, begin / width,
                   bytes / width);
}

static bool shares_done(const node_t *node, uint64_t number, unsigned pieces)
{
    const zcopy_slot_t *slot = slot_of(node, number);

    for (int i = 0; i < node->place.count; i++)
        if (node_counted(&slot->entries[i].share.done, number) <
            share_of(node, pieces, i))
            return false;
    return true;
}

bool node_zcopy_done(const node_t *node, const node_work_t *work,
                     uint64_t number)
{
    return shares_done(
        node, number,
        atomic_load_explicit(&work->pieces, memory_order_relaxed));
}

/* Do a piece of the share of [local]; false if none is left. Under
 * node.lock. */
static bool piece_do(node_t *node, node_work_t *work, int local)
{
    uint64_t number = work->number;
    zcopy_slot_t *slot = slot_of(node, number);
    zcopy_share_t *share = &slot->entries[local].share;
    size_t bytes = comm_request_bytes(work->request);
    size_t step, begin;
    unsigned pieces = pieces_of(node, bytes, &step), piece, share_pieces, had;

    if (!share_claim(node, number, local, pieces, &piece))
        return false;
    /* No post changes while a piece is claimed. */
    if (!posts_agree(node, slot)) {
        posts_differ(node, slot, number);
        return false;
    }
    begin = piece * step;
    piece_run(node, work, begin, bytes - begin < step ? bytes - begin : step);
    share_pieces = share_of(node, pieces, local);
    had = node_count_up(&share->done, number, share_pieces);
    check(had < share_pieces && had < node_counted(&share->claimed, number),
          "piece %u is done, of %u of rank %d", had, share_pieces, local);
    if (had + 1 == share_pieces) {
        /* Pairs with the fences of the others: the last one sees all shares. */
        atomic_thread_fence(memory_order_seq_cst);
        if (shares_done(node, number, pieces))
            node_notify(node);
    }
    return true;
}

bool node_zcopy_progress(node_t *node, node_work_t *work)
{
    uint64_t number = work->number;
    bool did = false;

    check(node->place.nodes == 1, "pieces are claimed in a group of %d nodes",
          node->place.nodes);
    node_lock(node);
    if (!node_failed(node) && all_posted(node, slot_of(node, number), number))
        for (int i = 0; !did && i < node->place.count; i++)
            did = piece_do(node, work,
                           (node->place.local + i) % node->place.count);
    node_unlock(node);
    if (node_zcopy_done(node, work, number))
        atomic_store_explicit(&work->done, true, memory_order_release);
    return did;
}

bool node_zcopy_ready(const node_t *node, const node_work_t *work)
{
    const zcopy_slot_t *slot = slot_of(node, work->number);
    unsigned pieces = atomic_load_explicit(&work->pieces, memory_order_relaxed);

    if (!all_posted(node, slot, work->number))
        return false;
    for (int i = 0; i < node->place.count; i++)
        if (node_counted(&slot->entries[i].share.claimed, work->number) <
            share_of(node, pieces, i))
            return true;
    return shares_done(node, work->number, pieces);
}

/* ---- several nodes ------------------------------------------------------- */

bool node_zcopy_arrived(node_t *node, uint64_t number)
{
    const zcopy_slot_t *slot = slot_of(node, number);

    node_zcopy_check(node, number);
    return atomic_load(&slot->complete) == number + 1;
}

void node_zcopy_lane_done(node_t *node, uint64_t number)
{
    zcopy_slot_t *slot = slot_of(node, number);
    /* Read it before the lane is counted: after the last lane is counted, the
     * slot may be used for another number. */
    uint32_t lanes = slot->lanes;
    unsigned had;

    check(atomic_load(&slot->complete) == number + 1,
          "a lane of %llu is done in the slot of %llu",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&slot->complete) - 1);
    had = atomic_fetch_add(&slot->lanes_done, 1);
    check(had < lanes, "%u lanes of %llu are done, of %u", had + 1,
          (unsigned long long)number, lanes);
    if (had + 1 == lanes) {
        atomic_store(&slot->completed, number + 1);
        node_notify(node);
    }
}

bool node_zcopy_lanes_done(const node_t *node, uint64_t number)
{
    return atomic_load(&slot_of(node, number)->completed) > number;
}
