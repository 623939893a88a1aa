/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Staging: see ucx_stage.h. */
#include "comm/ucx_stage.h"

#include <string.h>

#include "base/check.h"
#include "comm/node_sum.h"
#include "comm/ucx_group.h"

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

static stage_rank_t *stage_rank(const ucx_group_t *group, int local)
{
    return group->node.stages.maps[local];
}

static stage_slot_t *stage_slot(const ucx_group_t *group, int local,
                                uint64_t segment)
{
    return &stage_rank(group, local)->slots[segment % STAGE_SLOTS];
}

/* Where [local] copies its segment to. Two ranks swap their places each time
 * around: who read a place has it in its cache when it writes there next, so
 * that no cache line travels only to change its owner. */
static char *stage_data(const ucx_group_t *group, int local, uint64_t segment)
{
    if (group->place.count == 2)
        local ^= (int)(segment / STAGE_SLOTS % 2);
    return stage_rank(group, local)->data +
           segment % STAGE_SLOTS * group->node.stages.segment;
}

err_code_t ucx_stage_open(ucx_group_t *group, err_t *err)
{
    ucx_stages_t *stages = &group->node.stages;
    size_t bytes;
    int ranks = 1; /* of the fullest node: segments are alike everywhere */
    err_code_t code;

    for (int node = 0; node < group->place.nodes; node++)
        if (ucx_place_count(&group->place, node) > ranks)
            ranks = ucx_place_count(&group->place, node);
    bytes = STAGE_NODE / (size_t)ranks;
    bytes = bytes > STAGE_MOST    ? STAGE_MOST
            : bytes < STAGE_LEAST ? STAGE_LEAST
                                  : bytes;
    stages->segment = bytes / STAGE_SLOTS / MEM_ALIGN * MEM_ALIGN;
    if (group->place.nodes > 1 && stages->segment > UCX_CHUNK_BYTES)
        stages->segment = UCX_CHUNK_BYTES; /* what one message carries */
    stages->bytes = sizeof(stage_rank_t) + STAGE_SLOTS * stages->segment;
    code = ucx_shm_share(group, stages->bytes, true, stages->table, err);
    if (code == ERR_OK)
        stages->maps = stages->table;
    return code;
}

void ucx_stage_close(ucx_group_t *group)
{
    ucx_stages_t *stages = &group->node.stages;

    if (stages->maps == NULL)
        return;
    ucx_shm_unmap(stages->maps, group->place.count, stages->bytes);
    stages->maps = NULL;
}

/* ---- what a segment is --------------------------------------------------- */

static ucx_work_t *work_at(const ucx_stages_t *stages,
                           const stage_cursor_t *cursor)
{
    return stages->works[cursor->work % COMM_WORKS_MAX];
}

/* Bytes of the segment at [cursor]. */
static size_t bytes_at(const ucx_stages_t *stages, const stage_cursor_t *cursor)
{
    const ucx_work_t *work = work_at(stages, cursor);
    size_t left = comm_request_bytes(&work->request) - cursor->at;

    check(cursor->work < stages->begun && left > 0,
          "segment at byte %zu of work %llu of %llu", cursor->at,
          (unsigned long long)cursor->work, (unsigned long long)stages->begun);
    return left < work->part ? left : work->part;
}

/* True: that was the last one of its work. */
static bool cursor_step(const ucx_stages_t *stages, stage_cursor_t *cursor)
{
    cursor->at += bytes_at(stages, cursor);
    if (cursor->at < comm_request_bytes(&work_at(stages, cursor)->request))
        return false;
    cursor->work++;
    cursor->at = 0;
    return true;
}

static size_t piece_bytes(const ucx_group_t *group, size_t bytes)
{
    return ucx_piece_bytes(bytes, group->place.count, bytes);
}

/* In how many a segment is summed; 0: it is summed whole. Pure. Over several
 * nodes its owner sums it, as one. */
static unsigned pieces_of(const ucx_group_t *group, size_t bytes)
{
    size_t ranks = (size_t)group->place.count;
    size_t piece = piece_bytes(group, bytes);

    if (group->place.nodes > 1)
        return 1;
    if (ranks == 2 || bytes * ranks <= WHOLE_MOST)
        return 0;
    return (unsigned)((bytes + piece - 1) / piece);
}

/* ---- post ---------------------------------------------------------------- */

/* Something has been stored that node-mates may wait for. Over several nodes
 * they may wait in epoll, or compute while their comm threads sleep there. */
static void mates_ring(ucx_group_t *group)
{
    ucx_node_ring(group);
    for (int i = 0; group->place.nodes > 1 && i < group->place.count; i++)
        if (!atomic_load(&stage_rank(group, i)->present))
            ucx_bell_ring(group, i);
}

/* Have all ranks taken what is in the slot of the next segment? */
static bool slot_free(ucx_group_t *group, uint64_t segment)
{
    ucx_stages_t *stages = &group->node.stages;
    uint64_t floor = segment;

    if (segment < atomic_load(&stages->floor) + STAGE_SLOTS)
        return true;
    for (int i = 0; i < group->place.count; i++) {
        uint64_t taken = atomic_load_explicit(&stage_rank(group, i)->taken,
                                              memory_order_acquire);

        if (taken < floor)
            floor = taken;
    }
    atomic_store(&stages->floor, floor);
    return segment < floor + STAGE_SLOTS;
}

static bool can_post(ucx_group_t *group)
{
    const ucx_stages_t *stages = &group->node.stages;
    uint64_t segment = atomic_load(&stages->posted);

    return segment < atomic_load(&stages->wanted) && slot_free(group, segment);
}

static void segment_post(ucx_group_t *group)
{
    ucx_stages_t *stages = &group->node.stages;
    uint64_t segment = atomic_load(&stages->posted);
    const ucx_work_t *work = work_at(stages, &stages->post);
    stage_slot_t *slot = stage_slot(group, group->place.local, segment);
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
    memcpy(stage_data(group, group->place.local, segment),
           (const char *)work->request.data + stages->post.at, bytes);
    slot->number = work->number;
    slot->count = work->request.count;
    slot->type = (uint16_t)work->request.type;
    slot->op = (uint16_t)work->request.op;
    atomic_store(&stages->pieces[segment % STAGE_SLOTS],
                 pieces_of(group, bytes));
    atomic_store_explicit(&slot->flag, segment + 1, memory_order_release);
    cursor_step(stages, &stages->post);
    atomic_store(&stages->posted, segment + 1);
    mates_ring(group);
    if (group->place.nodes > 1 && ucx_stage_came(group, segment))
        ucx_bell_ring(group, ucx_stage_owner(group, work, segment));
}

/* ---- what owners on several nodes see ------------------------------------ */

char *ucx_stage_place(const ucx_group_t *group, int local, uint64_t segment)
{
    return stage_data(group, local, segment);
}

void ucx_stage_done(ucx_group_t *group, uint64_t segment)
{
    ucx_count_up(&stage_slot(group, 0, segment)->done, segment, 1);
    mates_ring(group);
}

/* ---- take ---------------------------------------------------------------- */

bool ucx_stage_came(const ucx_group_t *group, uint64_t segment)
{
    for (int i = 0; i < group->place.count; i++)
        if (atomic_load_explicit(&stage_slot(group, i, segment)->flag,
                                 memory_order_acquire) != segment + 1)
            return false;
    return true;
}

bool ucx_stage_agrees(const ucx_group_t *group, uint64_t segment)
{
    const stage_slot_t *mine = stage_slot(group, group->place.local, segment);

    for (int i = 0; i < group->place.count; i++) {
        const stage_slot_t *slot = stage_slot(group, i, segment);

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

static void whole_sum(ucx_group_t *group, uint64_t segment, size_t bytes)
{
    ucx_stages_t *stages = &group->node.stages;
    const comm_request_t *what = &work_at(stages, &stages->take)->request;
    size_t count = bytes / comm_type_bytes(what->type);
    char **parts = group->node.parts;
    char *into = (char *)what->data + stages->take.at;

    for (int i = 0; i < group->place.count; i++)
        parts[i] = stage_data(group, i, segment);
    parts[group->place.local] = into; /* the same, and nearer */
    if (group->place.count == 2)
        pair_sum(what, into, parts[!group->place.local],
                 group->place.local == 1, bytes);
    else
        node_sum_into(parts, group->place.count, count, what->type, what->op,
                      into);
}

static void piece_sum(ucx_group_t *group, uint64_t segment, size_t bytes,
                      unsigned piece)
{
    ucx_stages_t *stages = &group->node.stages;
    const comm_request_t *what = &work_at(stages, &stages->take)->request;
    size_t step = piece_bytes(group, bytes), begin = piece * step;
    size_t some = bytes - begin < step ? bytes - begin : step;
    char **parts = group->node.parts;

    check(begin < bytes, "piece %u begins at byte %zu of %zu", piece, begin,
          bytes);
    for (int i = 0; i < group->place.count; i++)
        parts[i] = stage_data(group, i, segment) + begin;
    node_sum_into(parts, group->place.count, some / comm_type_bytes(what->type),
                  what->type, what->op, parts[0]);
}

/* This rank has what it wanted of the segment. */
static void segment_taken(ucx_group_t *group, uint64_t segment)
{
    ucx_stages_t *stages = &group->node.stages;
    ucx_work_t *work = work_at(stages, &stages->take);
    bool last = cursor_step(stages, &stages->take);

    check(atomic_load(&stages->taken) == segment &&
              segment < atomic_load(&stages->posted),
          "segment %llu is taken, of %llu posted and %llu taken",
          (unsigned long long)segment,
          (unsigned long long)atomic_load(&stages->posted),
          (unsigned long long)atomic_load(&stages->taken));
    atomic_store(&stages->taken, segment + 1);
    atomic_store_explicit(&stage_rank(group, group->place.local)->taken,
                          segment + 1, memory_order_release);
    atomic_fetch_add(&group->node.moves, 1);
    if (last && group->place.nodes > 1)
        atomic_store(&work->taken, true);
    else if (last) /* now its owner may go */
        atomic_store_explicit(&work->state, COMM_DONE, memory_order_release);
    mates_ring(group); /* somebody may wait for a free slot */
}

/* A step of the oldest segment; false: it is up to others. */
static bool segment_take(ucx_group_t *group)
{
    ucx_stages_t *stages = &group->node.stages;
    uint64_t segment = atomic_load(&stages->taken);
    stage_slot_t *first = stage_slot(group, 0, segment);
    unsigned pieces = atomic_load(&stages->pieces[segment % STAGE_SLOTS]);
    unsigned piece;
    size_t bytes;

    if (segment >= atomic_load(&stages->posted) ||
        !ucx_stage_came(group, segment))
        return false;
    if (!ucx_stage_agrees(group, segment)) {
        ucx_node_disagree(group, work_at(stages, &stages->take)->number);
        return false;
    }
    bytes = bytes_at(stages, &stages->take);
    if (pieces == 0) {
        whole_sum(group, segment, bytes);
        segment_taken(group, segment);
        return true;
    }
    piece = pieces;
    if (group->place.nodes == 1)
        piece = ucx_count_up(&first->claimed, segment, pieces);
    if (piece < pieces) {
        piece_sum(group, segment, bytes, piece);
        if (ucx_count_up(&first->done, segment, pieces) + 1 == pieces)
            ucx_node_ring(group);
        return true;
    }
    if (ucx_counted(&first->done, segment) < pieces)
        return false;
    memcpy((char *)work_at(stages, &stages->take)->request.data +
               stages->take.at,
           stage_data(group, 0, segment), bytes);
    segment_taken(group, segment);
    return true;
}

static bool can_take(const ucx_group_t *group)
{
    const ucx_stages_t *stages = &group->node.stages;
    uint64_t segment = atomic_load(&stages->taken);
    const stage_slot_t *first = stage_slot(group, 0, segment);
    unsigned pieces = atomic_load(&stages->pieces[segment % STAGE_SLOTS]);

    return segment < atomic_load(&stages->posted) &&
           ucx_stage_came(group, segment) &&
           (pieces == 0 ||
            (group->place.nodes == 1 &&
             ucx_counted(&first->claimed, segment) < pieces) ||
            ucx_counted(&first->done, segment) >= pieces);
}

/* ---- works --------------------------------------------------------------- */

bool ucx_stage_takes(const ucx_group_t *group, const comm_request_t *request)
{
    comm_algorithm_t asked;

    if (group->node.stages.maps == NULL || request->kind != COMM_ALLREDUCE ||
        request->count == 0)
        return false;
    if (group->place.nodes > 1)
        return ucx_slot_suits(group, request);
    asked = ucx_asked(group, request); /* what is too much for one shot, too */
    return asked == COMM_BY_STAGE || asked == COMM_BY_SHOT;
}

bool ucx_stage_start(ucx_group_t *group, ucx_work_t *work)
{
    ucx_stages_t *stages = &group->node.stages;

    atomic_store(&work->taken, false);
    work->part = ucx_stage_part(group, &work->request);
    pthread_mutex_lock(&group->node.lock);
    check(stages->begun - stages->take.work < COMM_WORKS_MAX,
          "%llu works have begun, and %llu are done",
          (unsigned long long)stages->begun,
          (unsigned long long)stages->take.work);
    stages->works[stages->begun++ % COMM_WORKS_MAX] = work;
    work->segment = atomic_fetch_add(&stages->wanted, ucx_stage_segments(work));
    for (int i = 0; i < LEAD && can_post(group); i++)
        segment_post(group);
    pthread_mutex_unlock(&group->node.lock);
    return ucx_stage_owns(group, &work->request);
}

bool ucx_stage_busy(const ucx_group_t *group)
{
    const ucx_stages_t *stages = &group->node.stages;

    return atomic_load(&stages->taken) < atomic_load(&stages->wanted);
}

bool ucx_stage_ready(ucx_group_t *group)
{
    return ucx_stage_busy(group) && (can_take(group) || can_post(group));
}

/* After a fault no buffer is touched any more (see ucx_node_wait). */
bool ucx_stage_go(ucx_group_t *group)
{
    ucx_stages_t *stages = &group->node.stages;
    bool did = false;

    if (!ucx_stage_busy(group))
        return false;
    pthread_mutex_lock(&group->node.lock);
    if (!atomic_load(&group->failed)) {
        bool ahead =
            atomic_load(&stages->posted) >= atomic_load(&stages->taken) + LEAD;

        if (!ahead && can_post(group)) {
            segment_post(group);
            did = true;
        }
        did |= segment_take(group);
        if (!did && can_post(group)) {
            segment_post(group);
            did = true;
        }
    }
    pthread_mutex_unlock(&group->node.lock);
    return did;
}

/* ---- in the place of an owner -------------------------------------------- */

void ucx_stage_present(ucx_group_t *group, bool present)
{
    if (group->node.stages.maps != NULL)
        atomic_store_explicit(&stage_rank(group, group->place.local)->present,
                              present, memory_order_release);
}

/* Does [local] have to post, or to take, before this rank can go on? */
static bool is_behind(const ucx_group_t *group, int local)
{
    const ucx_stages_t *stages = &group->node.stages;
    uint64_t segment = atomic_load(&stages->taken);

    return atomic_load(&stage_slot(group, local, segment)->flag) <
               segment + 1 ||
           atomic_load(&stage_rank(group, local)->taken) + STAGE_SLOTS <=
               atomic_load(&stages->posted);
}

void ucx_stage_summon(ucx_group_t *group)
{
    if (!ucx_stage_busy(group))
        return;
    for (int i = 0; i < group->place.count; i++)
        if (i != group->place.local && is_behind(group, i) &&
            !atomic_load(&stage_rank(group, i)->present))
            ucx_bell_ring(group, i);
}

bool ucx_stage_wanted(ucx_group_t *group)
{
    return ucx_stage_busy(group) &&
           !atomic_load(&stage_rank(group, group->place.local)->present) &&
           !atomic_load(&group->failed) && ucx_stage_ready(group);
}

bool ucx_stage_help(ucx_group_t *group)
{
    return ucx_stage_wanted(group) && ucx_stage_go(group);
}
