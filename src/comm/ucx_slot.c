/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Slots of the node stage: see ucx_slot.h. */
#include "comm/ucx_slot.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "comm/node_sum.h"
#include "comm/ucx_group.h"
#include "comm/ucx_span.h"

/* Small enough that all ranks end at about the same time. */
#define PIECE_MOST ((size_t)128 << 10)

size_t ucx_slot_bytes(int count)
{
    return sizeof(node_slot_t) + (size_t)count * sizeof(node_entry_t);
}

static node_slot_t *node_slot(const ucx_group_t *group, uint64_t number)
{
    const ucx_node_t *node = &group->node;

    return (node_slot_t *)(void *)(node->board->slots +
                                   number % COMM_WORKS_MAX * node->stride);
}

/* ---- post ---------------------------------------------------------------- */

static const ucx_arena_t *arena_find(const ucx_group_t *group, const void *data,
                                     size_t bytes)
{
    const ucx_node_t *node = &group->node;
    uintptr_t at = (uintptr_t)data;

    if (!atomic_load(&node->open))
        return NULL;
    for (uint32_t i = 0; i < node->opened; i++) {
        const ucx_arena_t *arena = node->arenas[i];
        uintptr_t begin = arena == NULL ? 0 : (uintptr_t)arena->base.data;

        if (arena != NULL && at >= begin && at + bytes <= begin + arena->bytes)
            return arena;
    }
    return NULL;
}

/* A sum that is rounded once cannot be made in two stages. */
bool ucx_slot_suits(const ucx_group_t *group, const comm_request_t *request)
{
    comm_query_t query;

    if (request->kind != COMM_ALLREDUCE &&
        (group->place.nodes > 1 || (request->kind != COMM_REDUCE_SCATTER &&
                                    request->kind != COMM_GATHER_RANGES)))
        return false;
    query = ucx_query(group, request);
    query.where = COMM_WHERE_ARENA;
    if (group->place.nodes > 1 && query.half)
        return false;
    return comm_table_find(group->base.table, &query) == COMM_BY_NODE;
}

bool ucx_slot_takes(const ucx_group_t *group, const comm_request_t *request)
{
    size_t bytes = comm_request_bytes(request);

    return ucx_slot_suits(group, request) &&
           arena_find(group, request->data, bytes) != NULL;
}

/* Do all posts of the node ask for the same? */
static bool slot_agrees(const ucx_group_t *group, const node_slot_t *slot)
{
    const node_post_t *first = &slot->entries[0].post;

    for (int i = 1; i < group->place.count; i++) {
        const node_post_t *post = &slot->entries[i].post;

        if (post->count != first->count || post->cuts != first->cuts ||
            post->kind != first->kind || post->type != first->type ||
            post->op != first->op)
            return false;
    }
    return true;
}

/* Have all ranks posted? */
static bool slot_came(const ucx_group_t *group, const node_slot_t *slot,
                      uint64_t number)
{
    for (int i = 0; i < group->place.count; i++)
        if (atomic_load_explicit(&slot->entries[i].post.came,
                                 memory_order_acquire) <= number)
            return false;
    return true;
}

/* All find out. */
static void slot_disagrees(ucx_group_t *group, node_slot_t *slot,
                           uint64_t number)
{
    atomic_store(&slot->odd, number + 1);
    ucx_node_ring(group);
}

/* The slices are the comm threads' business. */
static void slot_open(ucx_group_t *group, node_slot_t *slot, uint64_t number)
{
    const node_post_t *first = &slot->entries[0].post;
    ucx_span_plan_t plan =
        ucx_span_plan(&group->place, first->count, (comm_type_t)first->type);

    check(atomic_load(&slot->arrived) == (unsigned)group->place.count,
          "slot of %llu opens with %u of %d ranks", (unsigned long long)number,
          atomic_load(&slot->arrived), group->place.count);
    check(atomic_load(&slot->opened) <= number, "slot of %llu opens for %llu",
          (unsigned long long)atomic_load(&slot->opened) - 1,
          (unsigned long long)number);
    atomic_store(&slot->arrived, 0);
    if (!slot_agrees(group, slot)) {
        slot_disagrees(group, slot, number);
        return;
    }
    slot->lanes = (uint32_t)(plan.slices * plan.lanes);
    atomic_store(&slot->done, 0);
    atomic_store(&slot->opened, number + 1);
    for (int i = 0; i < plan.slices; i++)
        if (i != group->place.local)
            ucx_bell_ring(group, i);
}

/* Does this rank own a slice of [request]? */
static bool owns_slice(const ucx_group_t *group, const comm_request_t *request)
{
    return group->place.nodes > 1 &&
           group->place.local <
               ucx_span_plan(&group->place, request->count, request->type)
                   .slices;
}

static void post_fill(const ucx_group_t *group, const comm_request_t *request,
                      node_post_t *post)
{
    const ucx_arena_t *arena =
        arena_find(group, request->data, comm_request_bytes(request));

    post->count = request->count;
    post->cuts =
        request->cuts == NULL
            ? 0
            : hash_bytes(request->cuts, ((size_t)group->base.size + 1) *
                                            sizeof *request->cuts);
    post->kind = (uint16_t)request->kind;
    post->type = (uint16_t)request->type;
    post->op = (uint16_t)request->op;
    post->arena = arena->number;
    post->offset = (uint64_t)((char *)request->data - (char *)arena->base.data);
}

static unsigned pieces_of(const ucx_group_t *group, size_t bytes, size_t *piece)
{
    *piece = ucx_piece_bytes(bytes, group->place.count, PIECE_MOST);
    return (unsigned)((bytes + *piece - 1) / *piece);
}

bool ucx_slot_start(ucx_group_t *group, ucx_work_t *work)
{
    const comm_request_t *what = &work->request;
    uint64_t number = work->number;
    node_slot_t *slot = node_slot(group, number);
    node_post_t *post = &slot->entries[group->place.local].post;
    size_t step;

    check(atomic_load(&post->came) <= number,
          "collective %llu posts in a slot of number %llu",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&post->came) - 1);
    post_fill(group, what, post);
    atomic_store_explicit(&work->pieces,
                          pieces_of(group, comm_request_bytes(what), &step),
                          memory_order_relaxed);
    atomic_store_explicit(&post->came, number + 1, memory_order_release);
    if (group->place.nodes == 1) {
        atomic_thread_fence(memory_order_seq_cst); /* the last sees all */
        if (slot_came(group, slot, number))
            ucx_node_ring(group);
    } else if (atomic_fetch_add(&slot->arrived, 1) + 1 ==
               (unsigned)group->place.count) {
        slot_open(group, slot, number);
    }
    return owns_slice(group, what);
}

void ucx_slot_foresee(ucx_group_t *group, uint64_t number)
{
    node_entry_t *mine = &node_slot(group, number)->entries[group->place.local];

    node_lines_own((const char *)mine, sizeof *mine);
}

bool ucx_slot_odd(const ucx_group_t *group, uint64_t number)
{
    return atomic_load(&node_slot(group, number)->odd) == number + 1;
}

void ucx_slot_check(ucx_group_t *group, uint64_t number)
{
    if (ucx_slot_odd(group, number))
        ucx_node_disagree(group, number);
}

/* ---- pieces -------------------------------------------------------------- */

/* How many of [pieces], dealt out to the ranks in turn, rank [local] gets. */
static unsigned share_of(const ucx_group_t *group, unsigned pieces, int local)
{
    unsigned count = (unsigned)group->place.count;

    return (pieces + count - 1 - (unsigned)local) / count;
}

/* A piece of the share of [local]. Of each share the last one comes first: its
 * owner may have written it last, and then it is in a cache. */
static bool share_claim(ucx_group_t *group, uint64_t number, int local,
                        unsigned pieces, unsigned *piece)
{
    node_share_t *share = &node_slot(group, number)->entries[local].share;
    unsigned most = share_of(group, pieces, local);
    unsigned had = most == 0 ? 0 : ucx_count_up(&share->claimed, number, most);

    if (had >= most)
        return false;
    *piece = (most - 1 - had) * (unsigned)group->place.count + (unsigned)local;
    check(*piece < pieces, "piece %u of %u, of the share of rank %d", *piece,
          pieces, local);
    return true;
}

void ucx_slot_parts(ucx_group_t *group, uint64_t number, char **parts)
{
    const node_slot_t *slot = node_slot(group, number);

    for (int i = 0; i < group->place.count; i++) {
        const node_post_t *post = &slot->entries[i].post;

        check(atomic_load(&post->came) == number + 1,
              "the post of rank %d is of number %llu, not %llu", i,
              (unsigned long long)atomic_load(&post->came) - 1,
              (unsigned long long)number);
        check(post->arena < group->node.opened &&
                  post->offset < group->node.arenas[post->arena]->bytes,
              "rank %d posts byte %llu of arena %u of %u", i,
              (unsigned long long)post->offset, post->arena,
              group->node.opened);
        parts[i] =
            (char *)group->node.arenas[post->arena]->maps[i] + post->offset;
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
static void piece_run(ucx_group_t *group, const ucx_work_t *work, size_t begin,
                      size_t bytes)
{
    const comm_request_t *what = &work->request;
    size_t width = comm_type_bytes(what->type);
    char **parts = group->node.parts;

    ucx_slot_parts(group, work->number, parts);
    for (int i = 0; i < group->place.count; i++)
        parts[i] += begin;
    if (what->kind == COMM_ALLREDUCE)
        node_sum(parts, group->place.count, bytes / width, what->type,
                 what->op);
    else
        ranges_run(what, parts, group->place.count, begin / width,
                   bytes / width);
}

static bool shares_done(const ucx_group_t *group, uint64_t number,
                        unsigned pieces)
{
    const node_slot_t *slot = node_slot(group, number);

    for (int i = 0; i < group->place.count; i++)
        if (ucx_counted(&slot->entries[i].share.done, number) <
            share_of(group, pieces, i))
            return false;
    return true;
}

bool ucx_slot_done(const ucx_group_t *group, const ucx_work_t *work,
                   uint64_t number)
{
    return shares_done(
        group, number,
        atomic_load_explicit(&work->pieces, memory_order_relaxed));
}

/* Of the share of [local]; false: none is left. Under node.lock. */
static bool piece_do(ucx_group_t *group, ucx_work_t *work, int local)
{
    uint64_t number = work->number;
    node_slot_t *slot = node_slot(group, number);
    node_share_t *share = &slot->entries[local].share;
    size_t bytes = comm_request_bytes(&work->request);
    size_t step, begin;
    unsigned pieces = pieces_of(group, bytes, &step), piece;

    if (!share_claim(group, number, local, pieces, &piece))
        return false;
    if (!slot_agrees(group, slot)) { /* the claim keeps all posts in place */
        slot_disagrees(group, slot, number);
        return false;
    }
    begin = piece * step;
    piece_run(group, work, begin, bytes - begin < step ? bytes - begin : step);
    if (ucx_count_up(&share->done, number, pieces) + 1 ==
        share_of(group, pieces, local)) {
        atomic_thread_fence(memory_order_seq_cst); /* the last sees all */
        if (shares_done(group, number, pieces))
            ucx_node_ring(group);
    }
    return true;
}

bool ucx_slot_go(ucx_group_t *group, ucx_work_t *work)
{
    uint64_t number = work->number;
    bool did = false;

    pthread_mutex_lock(&group->node.lock);
    if (!atomic_load(&group->failed) &&
        slot_came(group, node_slot(group, number), number))
        for (int i = 0; !did && i < group->place.count; i++)
            did = piece_do(group, work,
                           (group->place.local + i) % group->place.count);
    pthread_mutex_unlock(&group->node.lock);
    if (ucx_slot_done(group, work, number))
        atomic_store_explicit(&work->state, COMM_DONE, memory_order_release);
    return did;
}

bool ucx_slot_ready(const ucx_group_t *group, const ucx_work_t *work)
{
    const node_slot_t *slot = node_slot(group, work->number);
    unsigned pieces = atomic_load_explicit(&work->pieces, memory_order_relaxed);

    if (!slot_came(group, slot, work->number))
        return false;
    for (int i = 0; i < group->place.count; i++)
        if (ucx_counted(&slot->entries[i].share.claimed, work->number) <
            share_of(group, pieces, i))
            return true;
    return shares_done(group, work->number, pieces);
}

/* ---- several nodes ------------------------------------------------------- */

bool ucx_slot_opened(ucx_group_t *group, uint64_t number)
{
    const node_slot_t *slot = node_slot(group, number);

    ucx_slot_check(group, number);
    return atomic_load(&slot->opened) == number + 1;
}

void ucx_slot_lane_add(ucx_group_t *group, uint64_t number)
{
    node_slot_t *slot = node_slot(group, number);
    uint32_t lanes = slot->lanes; /* may be another's after the last one */

    if (atomic_fetch_add(&slot->done, 1) + 1 == lanes) {
        atomic_store(&slot->completed, number + 1);
        ucx_node_ring(group);
    }
}

bool ucx_slot_lanes_done(const ucx_group_t *group, uint64_t number)
{
    return atomic_load(&node_slot(group, number)->completed) > number;
}
