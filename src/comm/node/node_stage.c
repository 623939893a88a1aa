/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Staging: see node_stage.h. */
#include "comm/node/node_stage.h"

#include <string.h>

#include "base/check.h"
#include "comm/node/node_bell.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_shm.h"
#include "comm/node/node_sum.h"

/* Of one rank, and about so much of a node. */
#define STAGE_MOST ((size_t)512 << 10)
#define STAGE_LEAST ((size_t)64 << 10)
#define STAGE_NODE ((size_t)4 << 20)

/* Segments of three ranks or more are summed whole up to so much in all. */
#define WHOLE_MOST ((size_t)64 << 10)

/* Segments that a rank copies in before it looks at sums: they are still in its
 * cache when they are summed. */
#define LEAD 2

/* Asked for in one go. */
#define BLOCK_BYTES ((size_t)4 << 10)

/* ---- memory -------------------------------------------------------------- */

static stage_rank_t *stage_rank(const node_t *node, int local)
{
    return node->stages.maps[local];
}

static stage_slot_t *stage_slot(const node_t *node, int local, uint64_t segment)
{
    return &stage_rank(node, local)->slots[segment % STAGE_SLOTS];
}

/* Where [local] copies its segment to. Two ranks swap their places each time
 * around: who read a place has it in its cache when it writes there next, so
 * that no cache line travels only to change its owner. */
static char *stage_data(const node_t *node, int local, uint64_t segment)
{
    if (node->place.count == 2)
        local ^= (int)(segment / STAGE_SLOTS % 2);
    return stage_rank(node, local)->data +
           segment % STAGE_SLOTS * node->stages.segment;
}

err_code_t node_stage_open(node_t *node, err_t *err)
{
    node_stages_t *stages = &node->stages;
    size_t bytes, most = node->config.segment_most;
    int ranks = 1; /* of the fullest node: segments are alike everywhere */
    err_code_t code;

    for (int i = 0; i < node->place.nodes; i++)
        if (node_place_count(&node->place, i) > ranks)
            ranks = node_place_count(&node->place, i);
    bytes = STAGE_NODE / (size_t)ranks;
    bytes = bytes > STAGE_MOST    ? STAGE_MOST
            : bytes < STAGE_LEAST ? STAGE_LEAST
                                  : bytes;
    stages->segment = bytes / STAGE_SLOTS / MEM_ALIGN * MEM_ALIGN;
    if (most > 0 && stages->segment > most)
        stages->segment = most;
    stages->bytes = sizeof(stage_rank_t) + STAGE_SLOTS * stages->segment;
    code = node_shm_share(node, stages->bytes, true, stages->table, err);
    if (code == ERR_OK)
        stages->maps = stages->table;
    return code;
}

void node_stage_close(node_t *node)
{
    node_stages_t *stages = &node->stages;

    if (stages->maps == NULL)
        return;
    node_shm_unmap(stages->maps, node->place.count, stages->bytes);
    stages->maps = NULL;
}

/* ---- what a segment is --------------------------------------------------- */

static node_work_t *work_at(const node_stages_t *stages,
                            const stage_cursor_t *cursor)
{
    return stages->works[cursor->work % COMM_WORKS_MAX];
}

/* Bytes of the segment at [cursor]. */
static size_t bytes_at(const node_stages_t *stages,
                       const stage_cursor_t *cursor)
{
    const node_work_t *work = work_at(stages, cursor);
    size_t left = comm_request_bytes(work->request) - cursor->at;

    check(cursor->work < stages->begun && left > 0,
          "segment at byte %zu of work %llu of %llu", cursor->at,
          (unsigned long long)cursor->work, (unsigned long long)stages->begun);
    return left < work->segment_bytes ? left : work->segment_bytes;
}

/* True: that was the last one of its work. */
static bool cursor_step(const node_stages_t *stages, stage_cursor_t *cursor)
{
    cursor->at += bytes_at(stages, cursor);
    if (cursor->at < comm_request_bytes(work_at(stages, cursor)->request))
        return false;
    cursor->work++;
    cursor->at = 0;
    return true;
}

/* Of all segments of [work] but the last. Over several nodes no segment is
 * larger than a slice. */
static size_t segment_bytes(const node_t *node, const node_work_t *work)
{
    size_t most = node->stages.segment;

    return node->place.nodes > 1 && work->split.slice < most ? work->split.slice
                                                             : most;
}

uint64_t node_stage_segments(const node_work_t *work)
{
    size_t bytes = comm_request_bytes(work->request);

    return (bytes + work->segment_bytes - 1) / work->segment_bytes;
}

/* Several nodes: the rank of this node whose lanes reduce [segment]. */
static int segment_owner(const node_work_t *work, uint64_t segment)
{
    return (int)((segment - work->segment) % (uint64_t)work->split.owners);
}

static size_t piece_bytes(const node_t *node, size_t bytes)
{
    return node_piece_bytes(bytes, node->place.count, bytes);
}

/* In how many a segment is summed; 0: it is summed whole. Pure. Over several
 * nodes its owner sums it, as one. */
static unsigned pieces_of(const node_t *node, size_t bytes)
{
    size_t ranks = (size_t)node->place.count;
    size_t piece = piece_bytes(node, bytes);

    if (node->place.nodes > 1)
        return 1;
    if (ranks == 2 || bytes * ranks <= WHOLE_MOST)
        return 0;
    return (unsigned)((bytes + piece - 1) / piece);
}

/* ---- post ---------------------------------------------------------------- */

/* Something has been stored that node-mates may wait for. Over several nodes
 * they may wait in epoll, or compute while their comm threads sleep there. */
static void mates_ring(node_t *node)
{
    node_ring(node);
    for (int i = 0; node->place.nodes > 1 && i < node->place.count; i++)
        if (!atomic_load(&stage_rank(node, i)->present))
            node_bell_ring(node, i);
}

/* Have all ranks taken what is in the slot of the next segment? */
static bool slot_free(node_t *node, uint64_t segment)
{
    node_stages_t *stages = &node->stages;
    uint64_t floor = segment;

    if (segment < atomic_load(&stages->floor) + STAGE_SLOTS)
        return true;
    for (int i = 0; i < node->place.count; i++) {
        uint64_t taken = atomic_load_explicit(&stage_rank(node, i)->taken,
                                              memory_order_acquire);

        if (taken < floor)
            floor = taken;
    }
    atomic_store(&stages->floor, floor);
    return segment < floor + STAGE_SLOTS;
}

static bool can_post(node_t *node)
{
    const node_stages_t *stages = &node->stages;
    uint64_t segment = atomic_load(&stages->posted);

    return segment < atomic_load(&stages->wanted) && slot_free(node, segment);
}

static void segment_post(node_t *node)
{
    node_stages_t *stages = &node->stages;
    uint64_t segment = atomic_load(&stages->posted);
    const node_work_t *work = work_at(stages, &stages->post);
    stage_slot_t *slot = stage_slot(node, node->place.local, segment);
    size_t bytes = bytes_at(stages, &stages->post);

    check(bytes <= stages->segment, "a segment of %zu bytes in a slot of %zu",
          bytes, stages->segment);
    check(segment < atomic_load(&stages->taken) + STAGE_SLOTS,
          "segment %llu is posted, and %llu were taken",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&stages->taken));
    check(atomic_load(&slot->flag) ==
              (segment < STAGE_SLOTS ? 0 : segment + 1 - STAGE_SLOTS),
          "segment %llu is posted over segment %llu",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&slot->flag) - 1);
    memcpy(stage_data(node, node->place.local, segment),
           (const char *)work->request->data + stages->post.at, bytes);
    slot->number = work->number;
    slot->count = work->request->count;
    slot->type = (uint16_t)work->request->type;
    slot->op = (uint16_t)work->request->op;
    atomic_store(&stages->pieces[segment % STAGE_SLOTS],
                 pieces_of(node, bytes));
    atomic_store_explicit(&slot->flag, segment + 1, memory_order_release);
    cursor_step(stages, &stages->post);
    atomic_store(&stages->posted, segment + 1);
    mates_ring(node);
    if (node->place.nodes > 1 && node_stage_came(node, segment))
        node_bell_ring(node, segment_owner(work, segment));
}

/* ---- what owners on several nodes see ------------------------------------ */

char *node_stage_place(const node_t *node, int local, uint64_t segment)
{
    return stage_data(node, local, segment);
}

void node_stage_done(node_t *node, uint64_t segment)
{
    node_count_up(&stage_slot(node, 0, segment)->done, segment, 1);
    mates_ring(node);
}

/* ---- take ---------------------------------------------------------------- */

bool node_stage_came(const node_t *node, uint64_t segment)
{
    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&stage_slot(node, i, segment)->flag,
                                 memory_order_acquire) != segment + 1)
            return false;
    return true;
}

bool node_stage_agrees(const node_t *node, uint64_t segment)
{
    const stage_slot_t *mine = stage_slot(node, node->place.local, segment);

    for (int i = 0; i < node->place.count; i++) {
        const stage_slot_t *slot = stage_slot(node, i, segment);

        if (slot->number != mine->number || slot->count != mine->count ||
            slot->type != mine->type || slot->op != mine->op)
            return false;
    }
    return true;
}

/* Two parts, of which this rank has [into] and writes to [theirs] next. */
static void pair_sum(const comm_request_t *what, char *into, char *theirs,
                     bool theirs_first, size_t bytes)
{
    size_t width = comm_type_bytes(what->type);

    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        size_t some = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        char *mine = into + at, *other = theirs + at;

        node_lines_own(other, some);
        comm_reduce(mine, theirs_first ? other : mine,
                    theirs_first ? mine : other, some / width, what->type,
                    what->op);
    }
}

static void whole_sum(node_t *node, uint64_t segment, size_t bytes)
{
    node_stages_t *stages = &node->stages;
    const comm_request_t *what = work_at(stages, &stages->take)->request;
    size_t count = bytes / comm_type_bytes(what->type);
    char **parts = node->parts;
    char *into = (char *)what->data + stages->take.at;

    for (int i = 0; i < node->place.count; i++)
        parts[i] = stage_data(node, i, segment);
    parts[node->place.local] = into; /* the same, and nearer */
    if (node->place.count == 2)
        pair_sum(what, into, parts[!node->place.local], node->place.local == 1,
                 bytes);
    else
        node_sum_into(parts, node->place.count, count, what->type, what->op,
                      into);
}

static void piece_sum(node_t *node, uint64_t segment, size_t bytes,
                      unsigned piece)
{
    node_stages_t *stages = &node->stages;
    const comm_request_t *what = work_at(stages, &stages->take)->request;
    size_t step = piece_bytes(node, bytes), begin = piece * step;
    size_t some = bytes - begin < step ? bytes - begin : step;
    char **parts = node->parts;

    check(begin < bytes, "piece %u begins at byte %zu of %zu", piece, begin,
          bytes);
    for (int i = 0; i < node->place.count; i++)
        parts[i] = stage_data(node, i, segment) + begin;
    node_sum_into(parts, node->place.count, some / comm_type_bytes(what->type),
                  what->type, what->op, parts[0]);
}

/* This rank has what it wanted of the segment. */
static void segment_taken(node_t *node, uint64_t segment)
{
    node_stages_t *stages = &node->stages;
    node_work_t *work = work_at(stages, &stages->take);
    bool last = cursor_step(stages, &stages->take);

    check(atomic_load(&stages->taken) == segment &&
              segment < atomic_load(&stages->posted),
          "segment %llu is taken, of %llu posted and %llu taken",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&stages->posted),
          (unsigned long long)atomic_load(&stages->taken));
    atomic_store(&stages->taken, segment + 1);
    atomic_store_explicit(&stage_rank(node, node->place.local)->taken,
                          segment + 1, memory_order_release);
    atomic_fetch_add(&node->moves, 1);
    if (last) /* now its owner may go */
        atomic_store_explicit(&work->done, true, memory_order_release);
    mates_ring(node); /* somebody may wait for a free slot */
}

/* A step of the oldest segment; false: it is up to others. */
static bool segment_take(node_t *node)
{
    node_stages_t *stages = &node->stages;
    uint64_t segment = atomic_load(&stages->taken);
    stage_slot_t *first = stage_slot(node, 0, segment);
    unsigned pieces = atomic_load(&stages->pieces[segment % STAGE_SLOTS]);
    unsigned piece;
    size_t bytes;

    if (segment >= atomic_load(&stages->posted) ||
        !node_stage_came(node, segment))
        return false;
    if (!node_stage_agrees(node, segment)) {
        node_board_disagree(node, work_at(stages, &stages->take)->number);
        return false;
    }
    bytes = bytes_at(stages, &stages->take);
    if (pieces == 0) {
        whole_sum(node, segment, bytes);
        segment_taken(node, segment);
        return true;
    }
    piece = pieces;
    if (node->place.nodes == 1)
        piece = node_count_up(&first->claimed, segment, pieces);
    if (piece < pieces) {
        piece_sum(node, segment, bytes, piece);
        if (node_count_up(&first->done, segment, pieces) + 1 == pieces)
            node_ring(node);
        return true;
    }
    if (node_counted(&first->done, segment) < pieces)
        return false;
    memcpy((char *)work_at(stages, &stages->take)->request->data +
               stages->take.at,
           stage_data(node, 0, segment), bytes);
    segment_taken(node, segment);
    return true;
}

static bool can_take(const node_t *node)
{
    const node_stages_t *stages = &node->stages;
    uint64_t segment = atomic_load(&stages->taken);
    const stage_slot_t *first = stage_slot(node, 0, segment);
    unsigned pieces = atomic_load(&stages->pieces[segment % STAGE_SLOTS]);

    return segment < atomic_load(&stages->posted) &&
           node_stage_came(node, segment) &&
           (pieces == 0 ||
            (node->place.nodes == 1 &&
             node_counted(&first->claimed, segment) < pieces) ||
            node_counted(&first->done, segment) >= pieces);
}

/* ---- works --------------------------------------------------------------- */

bool node_can_stage(const node_t *node)
{
    return node->stages.maps != NULL;
}

void node_stage_start(node_t *node, node_work_t *work)
{
    node_stages_t *stages = &node->stages;

    work->segment_bytes = segment_bytes(node, work);
    node_lock(node);
    check(stages->begun - stages->take.work < COMM_WORKS_MAX,
          "%llu works have begun, and %llu are done",
          (unsigned long long)stages->begun,
          (unsigned long long)stages->take.work);
    stages->works[stages->begun++ % COMM_WORKS_MAX] = work;
    work->segment =
        atomic_fetch_add(&stages->wanted, node_stage_segments(work));
    for (int i = 0; i < LEAD && can_post(node); i++)
        segment_post(node);
    node_unlock(node);
}

bool node_stage_busy(const node_t *node)
{
    const node_stages_t *stages = &node->stages;

    return atomic_load(&stages->taken) < atomic_load(&stages->wanted);
}

bool node_stage_ready(node_t *node)
{
    return node_stage_busy(node) && (can_take(node) || can_post(node));
}

/* After a fault no buffer is touched any more (see node_wait). */
bool node_stage_go(node_t *node)
{
    node_stages_t *stages = &node->stages;
    bool did = false;

    if (!node_stage_busy(node))
        return false;
    node_lock(node);
    if (!node_failed(node)) {
        bool ahead =
            atomic_load(&stages->posted) >= atomic_load(&stages->taken) + LEAD;

        if (!ahead && can_post(node)) {
            segment_post(node);
            did = true;
        }
        did |= segment_take(node);
        if (!did && can_post(node)) {
            segment_post(node);
            did = true;
        }
    }
    node_unlock(node);
    return did;
}

/* ---- in the place of an owner -------------------------------------------- */

void node_stage_present(node_t *node, bool present)
{
    if (node->stages.maps != NULL)
        atomic_store_explicit(&stage_rank(node, node->place.local)->present,
                              present, memory_order_release);
}

/* Does [local] have to post, or to take, before this rank can go on? */
static bool is_behind(const node_t *node, int local)
{
    const node_stages_t *stages = &node->stages;
    uint64_t segment = atomic_load(&stages->taken);

    return atomic_load(&stage_slot(node, local, segment)->flag) < segment + 1 ||
           atomic_load(&stage_rank(node, local)->taken) + STAGE_SLOTS <=
               atomic_load(&stages->posted);
}

void node_stage_summon(node_t *node)
{
    if (!node_stage_busy(node))
        return;
    for (int i = 0; i < node->place.count; i++)
        if (i != node->place.local && is_behind(node, i) &&
            !atomic_load(&stage_rank(node, i)->present))
            node_bell_ring(node, i);
}

bool node_stage_wanted(node_t *node)
{
    return node_stage_busy(node) &&
           !atomic_load(&stage_rank(node, node->place.local)->present) &&
           !node_failed(node) && node_stage_ready(node);
}

bool node_stage_help(node_t *node)
{
    return node_stage_wanted(node) && node_stage_go(node);
}
