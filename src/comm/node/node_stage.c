/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Staged all-reduces: see node_stage.h. */
#include "comm/node/node_stage.h"

#include <string.h>

#include "base/check.h"
#include "comm/node/node_control.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_shm.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_wakeup.h"

/* Bytes of a rank's memory for staging: its part of STAGE_NODE bytes for the
 * node, within these limits. */
#define STAGE_MOST ((size_t)512 << 10)
#define STAGE_LEAST ((size_t)64 << 10)
#define STAGE_NODE ((size_t)4 << 20)

/* Three or more ranks sum a whole segment each if all of their inputs together
 * have at most this many bytes. */
#define WHOLE_MOST ((size_t)64 << 10)

/* Number of segments that a rank copies in before it checks for sums: they are
 * still in its cache when they are summed. */
#define LEAD 2

/* Bytes that are prefetched together. */
#define BLOCK_BYTES ((size_t)4 << 10)

/* ---- memory -------------------------------------------------------------- */

static stage_rank_t *rank_of(const node_t *node, int local)
{
    return node->stage.maps[local];
}

static stage_slot_t *slot_of(const node_t *node, int local, uint64_t segment)
{
    return &rank_of(node, local)->slots[segment % STAGE_SLOTS];
}

/* If there are two ranks, they swap their places after each pass over the ring:
 * then a rank writes to a place that it has read before, which is in its cache,
 * and no cache line moves only to change its owner. */
char *node_stage_place(const node_t *node, int local, uint64_t segment)
{
    check(local >= 0 && local < node->place.count, "place of rank %d of %d",
          local, node->place.count);
    if (node->place.count == 2)
        local ^= (int)(segment / STAGE_SLOTS % 2);
    return rank_of(node, local)->data +
           segment % STAGE_SLOTS * node->stage.segment_bytes;
}

err_code_t node_stage_open(node_t *node, err_t *err)
{
    node_stage_t *stage = &node->stage;
    size_t bytes, most = node->config.segment_most;
    /* On the node with most ranks: all ranks need equal segments. */
    int ranks = 1;
    err_code_t rc;

    for (int i = 0; i < node->place.nodes; i++)
        if (node_place_count(&node->place, i) > ranks)
            ranks = node_place_count(&node->place, i);
    bytes = STAGE_NODE / (size_t)ranks;
    bytes = bytes > STAGE_MOST    ? STAGE_MOST
            : bytes < STAGE_LEAST ? STAGE_LEAST
                                  : bytes;
    stage->segment_bytes = bytes / STAGE_SLOTS / MEM_ALIGN * MEM_ALIGN;
    if (most > 0 && stage->segment_bytes > most)
        stage->segment_bytes = most;
    stage->bytes = sizeof(stage_rank_t) + STAGE_SLOTS * stage->segment_bytes;
    rc = node_shm_share(node, stage->bytes, true, stage->table, err);
    if (rc == ERR_OK)
        stage->maps = stage->table;
    return rc;
}

void node_stage_close(node_t *node)
{
    node_stage_t *stage = &node->stage;

    if (stage->maps == NULL)
        return;
    node_shm_unmap(stage->maps, node->place.count, stage->bytes);
    stage->maps = NULL;
}

size_t node_stage_most(const node_t *node)
{
    return node->stage.maps == NULL ? 0 : node->stage.segment_bytes;
}

/* ---- what a segment is --------------------------------------------------- */

static node_work_t *work_at(const node_stage_t *stage,
                            const stage_cursor_t *cursor)
{
    return stage->works[cursor->work % COMM_WORKS_MAX];
}

/* Bytes of the segment at [cursor]. */
static size_t bytes_at(const node_stage_t *stage, const stage_cursor_t *cursor)
{
    const node_work_t *work = work_at(stage, cursor);
    size_t left = comm_request_bytes(work->request) - cursor->offset;

    check(cursor->work < stage->works_started && left > 0,
          "segment at byte %zu of work %llu of %llu", cursor->offset,
          (unsigned long long)cursor->work,
          (unsigned long long)stage->works_started);
    check(cursor->offset < comm_request_bytes(work->request) &&
              cursor->offset % work->segment_bytes == 0,
          "segment at byte %zu of %zu, in segments of %zu", cursor->offset,
          comm_request_bytes(work->request), work->segment_bytes);
    return left < work->segment_bytes ? left : work->segment_bytes;
}

/* Advance to the next segment. Returns true if the current one was the last of
 * its work. */
static bool cursor_step(const node_stage_t *stage, stage_cursor_t *cursor)
{
    cursor->offset += bytes_at(stage, cursor);
    if (cursor->offset < comm_request_bytes(work_at(stage, cursor)->request))
        return false;
    cursor->work++;
    cursor->offset = 0;
    return true;
}

/* Bytes of each segment of [work] except the last. With several nodes no
 * segment is larger than a slice. */
static size_t segment_bytes(const node_t *node, const node_work_t *work)
{
    size_t most = node->stage.segment_bytes;

    return node->place.nodes > 1 && work->split.slice < most ? work->split.slice
                                                             : most;
}

uint64_t node_stage_segments(const node_work_t *work)
{
    size_t bytes = comm_request_bytes(work->request);

    return (bytes + work->segment_bytes - 1) / work->segment_bytes;
}

/* With several nodes: the local rank whose lanes reduce [segment]. */
static int segment_owner(const node_work_t *work, uint64_t segment)
{
    check(segment >= work->segment &&
              segment - work->segment < node_stage_segments(work),
          "segment %llu of a work of %llu from %llu on",
          (unsigned long long)segment,
          (unsigned long long)node_stage_segments(work),
          (unsigned long long)work->segment);
    return (int)((segment - work->segment) % (uint64_t)work->split.owners);
}

/* Bytes of a piece of a segment of [bytes] bytes. */
static size_t piece_bytes(const node_t *node, size_t bytes)
{
    return node_piece_bytes(bytes, node->place.count, bytes);
}

/* Number of pieces in which a segment is summed; 0: every rank sums the whole
 * segment. With several nodes the owner sums it as one piece. Pure. */
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

/* Wake ranks of the node that may wait for what was just stored. With several
 * nodes their owners may sleep in epoll, or compute while their comm threads
 * sleep in epoll. */
static void notify_all(node_t *node)
{
    node_notify(node);
    for (int i = 0; node->place.nodes > 1 && i < node->place.count; i++)
        if (!atomic_load(&rank_of(node, i)->present))
            node_wakeup_send(node, i);
}

/* Return whether all ranks have consumed the contents of the slot for
 * [segment], which is the next one to post. */
static bool slot_is_free(node_t *node, uint64_t segment)
{
    node_stage_t *stage = &node->stage;
    uint64_t released = segment;

    if (segment < atomic_load(&stage->released) + STAGE_SLOTS)
        return true;
    for (int i = 0; i < node->place.count; i++) {
        uint64_t consumed = atomic_load_explicit(&rank_of(node, i)->consumed,
                                                 memory_order_acquire);

        if (consumed < released)
            released = consumed;
    }
    atomic_store(&stage->released, released);
    return segment < released + STAGE_SLOTS;
}

static bool can_post(node_t *node)
{
    const node_stage_t *stage = &node->stage;
    uint64_t segment = atomic_load(&stage->posted);

    return segment < atomic_load(&stage->started) &&
           slot_is_free(node, segment);
}

/* Copy the next segment into this rank's slot. Under node.lock. */
static void segment_post(node_t *node)
{
    node_stage_t *stage = &node->stage;
    uint64_t segment = atomic_load(&stage->posted);
    const node_work_t *work = work_at(stage, &stage->post);
    stage_slot_t *slot = slot_of(node, node->place.local, segment);
    size_t bytes = bytes_at(stage, &stage->post);

    check(node_is_locked(node), "segment %llu is posted without the lock",
          (unsigned long long)segment);
    check(bytes <= stage->segment_bytes,
          "a segment of %zu bytes in a slot of %zu", bytes,
          stage->segment_bytes);
    check(segment < atomic_load(&stage->started) &&
              segment < atomic_load(&stage->consumed) + STAGE_SLOTS,
          "segment %llu is posted, of %llu started and %llu consumed",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&stage->started),
          (unsigned long long)atomic_load(&stage->consumed));
    check(atomic_load(&slot->flag) ==
              (segment < STAGE_SLOTS ? 0 : segment + 1 - STAGE_SLOTS),
          "segment %llu is posted over segment %llu",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&slot->flag) - 1);
    memcpy(node_stage_place(node, node->place.local, segment),
           (const char *)work->request->data + stage->post.offset, bytes);
    slot->number = work->number;
    slot->count = work->request->count;
    slot->type = (uint16_t)work->request->type;
    slot->op = (uint16_t)work->request->op;
    atomic_store(&stage->pieces[segment % STAGE_SLOTS], pieces_of(node, bytes));
    atomic_store_explicit(&slot->flag, segment + 1, memory_order_release);
    cursor_step(stage, &stage->post);
    atomic_store(&stage->posted, segment + 1);
    notify_all(node);
    if (node->place.nodes > 1 && node_stage_arrived(node, segment))
        node_wakeup_send(node, segment_owner(work, segment));
}

/* ---- what owners on several nodes see ------------------------------------ */

void node_stage_done(node_t *node, uint64_t segment)
{
    unsigned had = node_count_up(&slot_of(node, 0, segment)->done, segment, 1);

    check(had == 0, "segment %llu has two results",
          (unsigned long long)segment);
    (void)had;
    notify_all(node);
}

/* ---- consume ------------------------------------------------------------- */

bool node_stage_arrived(const node_t *node, uint64_t segment)
{
    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&slot_of(node, i, segment)->flag,
                                 memory_order_acquire) != segment + 1)
            return false;
    return true;
}

bool node_stage_agrees(node_t *node, uint64_t segment)
{
    const stage_slot_t *mine = slot_of(node, node->place.local, segment);

    for (int i = 0; i < node->place.count; i++) {
        const stage_slot_t *slot = slot_of(node, i, segment);

        if (slot->number != mine->number || slot->count != mine->count ||
            slot->type != mine->type || slot->op != mine->op) {
            node_control_differ(node, mine->number);
            return false;
        }
    }
    return true;
}

/* Sum [theirs] to [into], which belongs to this rank. [theirs] is prefetched
 * for writing, as this rank writes there next. */
static void pair_sum(const comm_request_t *request, char *into, char *theirs,
                     bool theirs_first, size_t bytes)
{
    size_t width = comm_type_bytes(request->type);

    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        size_t some = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        char *mine = into + at, *other = theirs + at;

        node_prefetch_write(other, some);
        comm_reduce(mine, theirs_first ? other : mine,
                    theirs_first ? mine : other, some / width, request->type,
                    request->op);
    }
}

static void whole_sum(node_t *node, uint64_t segment, size_t bytes)
{
    node_stage_t *stage = &node->stage;
    const comm_request_t *request = work_at(stage, &stage->consume)->request;
    size_t count = bytes / comm_type_bytes(request->type);
    char **buffers = node->buffers;
    char *into = (char *)request->data + stage->consume.offset;

    for (int i = 0; i < node->place.count; i++)
        buffers[i] = node_stage_place(node, i, segment);
    /* Equal to the contents of this rank's place, and closer in the cache. */
    buffers[node->place.local] = into;
    if (node->place.count == 2)
        pair_sum(request, into, buffers[!node->place.local],
                 node->place.local == 1, bytes);
    else
        node_sum_into(buffers, node->place.count, count, request->type,
                      request->op, into);
}

static void piece_sum(node_t *node, uint64_t segment, size_t bytes,
                      unsigned piece)
{
    node_stage_t *stage = &node->stage;
    const comm_request_t *request = work_at(stage, &stage->consume)->request;
    size_t step = piece_bytes(node, bytes), begin = piece * step;
    size_t some = bytes - begin < step ? bytes - begin : step;
    char **buffers = node->buffers;

    check(begin < bytes, "piece %u begins at byte %zu of %zu", piece, begin,
          bytes);
    for (int i = 0; i < node->place.count; i++)
        buffers[i] = node_stage_place(node, i, segment) + begin;
    node_sum_into(buffers, node->place.count,
                  some / comm_type_bytes(request->type), request->type,
                  request->op, buffers[0]);
}

/* Note that this rank has the result of the segment. Under node.lock. */
static void segment_consumed(node_t *node, uint64_t segment)
{
    node_stage_t *stage = &node->stage;
    node_work_t *work = work_at(stage, &stage->consume);
    bool last = cursor_step(stage, &stage->consume);

    check(node_is_locked(node), "segment %llu is consumed without the lock",
          (unsigned long long)segment);
    check(atomic_load(&stage->consumed) == segment &&
              segment < atomic_load(&stage->posted),
          "segment %llu is consumed, of %llu posted and %llu consumed",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&stage->posted),
          (unsigned long long)atomic_load(&stage->consumed));
    check(last == (segment + 1 == work->segment + node_stage_segments(work)),
          "segment %llu ends a work of %llu from %llu on",
          (unsigned long long)segment,
          (unsigned long long)node_stage_segments(work),
          (unsigned long long)work->segment);
    atomic_store(&stage->consumed, segment + 1);
    atomic_store_explicit(&rank_of(node, node->place.local)->consumed,
                          segment + 1, memory_order_release);
    atomic_fetch_add(&node->progress, 1);
    if (last) /* from here on the owner may return from its wait */
        atomic_store_explicit(&work->done, true, memory_order_release);
    notify_all(node); /* a rank may wait for a free slot */
}

/* Claim a piece of a segment and sum it; false if no piece is left. Under
 * node.lock. */
static bool piece_do(node_t *node, uint64_t segment, size_t bytes,
                     unsigned pieces)
{
    stage_slot_t *first = slot_of(node, 0, segment);
    unsigned piece, had;

    if (node->place.nodes > 1) /* the owner of the segment sums it */
        return false;
    piece = node_count_up(&first->claimed, segment, pieces);
    if (piece >= pieces)
        return false;
    piece_sum(node, segment, bytes, piece);
    had = node_count_up(&first->done, segment, pieces);
    check(had < pieces && had < node_counted(&first->claimed, segment),
          "piece %u of %u of segment %llu is done", had, pieces,
          (unsigned long long)segment);
    if (had + 1 == pieces)
        node_notify(node);
    return true;
}

/* Do a step of the oldest segment; false if other ranks have to act first.
 * Under node.lock. */
static bool segment_progress(node_t *node)
{
    node_stage_t *stage = &node->stage;
    uint64_t segment = atomic_load(&stage->consumed);
    const node_work_t *work = work_at(stage, &stage->consume);
    unsigned pieces = atomic_load(&stage->pieces[segment % STAGE_SLOTS]);
    size_t bytes;

    if (segment >= atomic_load(&stage->posted) ||
        !node_stage_arrived(node, segment))
        return false;
    if (!node_stage_agrees(node, segment))
        return false;
    bytes = bytes_at(stage, &stage->consume);
    if (pieces == 0) {
        whole_sum(node, segment, bytes);
        segment_consumed(node, segment);
        return true;
    }
    if (piece_do(node, segment, bytes, pieces))
        return true;
    if (node_counted(&slot_of(node, 0, segment)->done, segment) < pieces)
        return false;
    memcpy((char *)work->request->data + stage->consume.offset,
           node_stage_place(node, 0, segment), bytes);
    segment_consumed(node, segment);
    return true;
}

static bool can_progress(const node_t *node)
{
    const node_stage_t *stage = &node->stage;
    uint64_t segment = atomic_load(&stage->consumed);
    const stage_slot_t *first = slot_of(node, 0, segment);
    unsigned pieces = atomic_load(&stage->pieces[segment % STAGE_SLOTS]);

    return segment < atomic_load(&stage->posted) &&
           node_stage_arrived(node, segment) &&
           (pieces == 0 ||
            (node->place.nodes == 1 &&
             node_counted(&first->claimed, segment) < pieces) ||
            node_counted(&first->done, segment) >= pieces);
}

/* ---- works --------------------------------------------------------------- */

void node_stage_start(node_t *node, node_work_t *work)
{
    node_stage_t *stage = &node->stage;

    work->segment_bytes = segment_bytes(node, work);
    check(work->segment_bytes > 0, "collective %llu in segments of no bytes",
          (unsigned long long)work->number);
    node_lock(node);
    check(stage->works_started - stage->consume.work < COMM_WORKS_MAX,
          "%llu works have started, and %llu are done",
          (unsigned long long)stage->works_started,
          (unsigned long long)stage->consume.work);
    stage->works[stage->works_started++ % COMM_WORKS_MAX] = work;
    work->segment =
        atomic_fetch_add(&stage->started, node_stage_segments(work));
    for (int i = 0; i < LEAD && can_post(node); i++)
        segment_post(node);
    node_unlock(node);
}

bool node_stage_busy(const node_t *node)
{
    const node_stage_t *stage = &node->stage;

    return atomic_load(&stage->consumed) < atomic_load(&stage->started);
}

bool node_stage_ready(node_t *node)
{
    return node_stage_busy(node) && (can_progress(node) || can_post(node));
}

/* After a fault no buffer may be touched any more (see node_wait). */
bool node_stage_progress(node_t *node)
{
    node_stage_t *stage = &node->stage;
    bool did = false;

    if (!node_stage_busy(node))
        return false;
    node_lock(node);
    if (!node_failed(node)) {
        bool ahead =
            atomic_load(&stage->posted) >= atomic_load(&stage->consumed) + LEAD;

        if (!ahead && can_post(node)) {
            segment_post(node);
            did = true;
        }
        did |= segment_progress(node);
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
    if (node->stage.maps != NULL)
        atomic_store_explicit(&rank_of(node, node->place.local)->present,
                              present, memory_order_release);
}

/* Return whether rank [local] has to post or to consume before this rank can
 * proceed. */
static bool is_behind(const node_t *node, int local)
{
    const node_stage_t *stage = &node->stage;
    uint64_t segment = atomic_load(&stage->consumed);

    return atomic_load(&slot_of(node, local, segment)->flag) < segment + 1 ||
           atomic_load(&rank_of(node, local)->consumed) + STAGE_SLOTS <=
               atomic_load(&stage->posted);
}

void node_stage_wake_absent(node_t *node)
{
    if (!node_stage_busy(node))
        return;
    for (int i = 0; i < node->place.count; i++)
        if (i != node->place.local && is_behind(node, i) &&
            !atomic_load(&rank_of(node, i)->present))
            node_wakeup_send(node, i);
}

bool node_stage_needs_help(node_t *node)
{
    return node_stage_busy(node) &&
           !atomic_load(&rank_of(node, node->place.local)->present) &&
           !node_failed(node) && node_stage_ready(node);
}

bool node_stage_help(node_t *node)
{
    return node_stage_needs_help(node) && node_stage_progress(node);
}
