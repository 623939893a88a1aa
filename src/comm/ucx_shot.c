/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One-shot slots: see ucx_shot.h. */
#include "comm/ucx_shot.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "comm/node_sum.h"
#include "comm/ucx_group.h"

/* Bytes of data beside the flag. */
#define SHOT_HEAD (MEM_ALIGN - offsetof(shot_slot_t, data))

#define RING_EVERY (SHOTS / 4)

bool ucx_shot_takes(const ucx_group_t *group, const comm_request_t *request)
{
    size_t bytes = comm_request_bytes(request);

    if (group->place.nodes > 1)
        return false;
    return request->kind == COMM_BARRIER ||
           (request->kind == COMM_ALLREDUCE && bytes <= SHOT_BYTES &&
            bytes * (size_t)group->place.count <= SHOT_BYTES_ALL &&
            ucx_asked(group, request) == COMM_BY_SHOT);
}

/* Two ranks swap their slots each time around: who has read one has it in its
 * cache when it writes there next. */
static shot_slot_t *shot_slot(const ucx_group_t *group, int local,
                              uint64_t shot)
{
    if (group->place.count == 2)
        local ^= (int)(shot / SHOTS % 2);
    return &group->node.shots.ranks[local].slots[shot % SHOTS];
}

/* ---- post ---------------------------------------------------------------- */

/* Have all ranks taken what is in the slot of the next shot? */
static bool slot_free(ucx_group_t *group)
{
    ucx_shots_t *shots = &group->node.shots;

    if (shots->posted < shots->floor + SHOTS)
        return true;
    shots->floor = shots->posted;
    for (int i = 0; i < group->place.count; i++) {
        uint64_t taken = atomic_load(&shots->ranks[i].taken);

        if (taken < shots->floor)
            shots->floor = taken;
    }
    return shots->posted < shots->floor + SHOTS;
}

/* The line of the flag comes last: others look at it all the time, and would
 * take it away between two stores. */
static void slot_write(ucx_group_t *group, const comm_request_t *request,
                       uint64_t shot)
{
    shot_slot_t *slot = shot_slot(group, group->place.local, shot);
    size_t bytes = comm_request_bytes(request);
    size_t head = bytes < SHOT_HEAD ? bytes : SHOT_HEAD;

    check(bytes <= SHOT_BYTES, "%zu bytes in a one-shot slot of %zu", bytes,
          (size_t)SHOT_BYTES);
    check(atomic_load(&slot->flag) == (shot < SHOTS ? 0 : shot + 1 - SHOTS),
          "shot %llu is written over %llu", (unsigned long long)shot,
          (unsigned long long)atomic_load(&slot->flag) - 1);
    if (bytes > head)
        memcpy(slot->data + head, (const char *)request->data + head,
               bytes - head);
    slot->count = (uint32_t)request->count; /* of a barrier: 0 */
    slot->type = (uint16_t)request->type;
    slot->op = (uint16_t)request->op;
    if (head > 0)
        memcpy(slot->data, request->data, head);
    atomic_store_explicit(&slot->flag, shot + 1, memory_order_release);
}

/* Under node.lock. */
static void shots_post(ucx_group_t *group)
{
    ucx_shots_t *shots = &group->node.shots;
    uint64_t before = shots->posted;

    while (shots->posted < atomic_load(&shots->begun) && slot_free(group)) {
        const ucx_work_t *work = shots->works[shots->posted % COMM_WORKS_MAX];

        slot_write(group, &work->request, shots->posted++);
    }
    if (shots->posted != before)
        ucx_node_ring(group);
}

void ucx_shot_start(ucx_group_t *group, ucx_work_t *work)
{
    ucx_shots_t *shots = &group->node.shots;

    pthread_mutex_lock(&group->node.lock);
    check(atomic_load(&shots->begun) - atomic_load(&shots->taken) <
              COMM_WORKS_MAX,
          "%llu shots have begun, %llu are taken",
          (unsigned long long)atomic_load(&shots->begun),
          (unsigned long long)atomic_load(&shots->taken));
    shots->works[atomic_load(&shots->begun) % COMM_WORKS_MAX] = work;
    atomic_fetch_add(&shots->begun, 1);
    shots_post(group);
    pthread_mutex_unlock(&group->node.lock);
}

bool ucx_shot_busy(const ucx_group_t *group)
{
    const ucx_shots_t *shots = &group->node.shots;

    return atomic_load_explicit(&shots->taken, memory_order_relaxed) <
           atomic_load_explicit(&shots->begun, memory_order_relaxed);
}

/* ---- take ---------------------------------------------------------------- */

bool ucx_shot_ready(const ucx_group_t *group)
{
    uint64_t shot =
        atomic_load_explicit(&group->node.shots.taken, memory_order_relaxed);

    for (int i = 0; i < group->place.count; i++)
        if (atomic_load_explicit(&shot_slot(group, i, shot)->flag,
                                 memory_order_acquire) != shot + 1)
            return false;
    return true;
}

/* Do all ranks ask for the same? */
static bool shot_agrees(const ucx_group_t *group, const comm_request_t *request,
                        uint64_t shot)
{
    for (int i = 0; i < group->place.count; i++) {
        const shot_slot_t *slot = shot_slot(group, i, shot);

        if (slot->count != request->count ||
            slot->type != (uint16_t)request->type ||
            slot->op != (uint16_t)request->op)
            return false;
    }
    return true;
}

static void shot_sum(ucx_group_t *group, const comm_request_t *request,
                     uint64_t shot)
{
    char **parts = group->node.parts;

    for (int i = 0; i < group->place.count; i++)
        parts[i] = shot_slot(group, i, shot)->data;
    if (group->place.count == 2)
        node_lines_own(parts[!group->place.local], comm_request_bytes(request));
    parts[group->place.local] = request->data; /* the same, and nearer */
    if (group->place.count == 2 && !comm_type_rounds(request->type))
        comm_reduce(request->data, parts[0], parts[1], request->count,
                    request->type, request->op);
    else
        node_sum_into(parts, group->place.count, request->count, request->type,
                      request->op, request->data);
}

bool ucx_shot_go(ucx_group_t *group)
{
    ucx_shots_t *shots = &group->node.shots;
    bool any = false;

    pthread_mutex_lock(&group->node.lock);
    shots_post(group);
    for (uint64_t shot = atomic_load(&shots->taken);
         shot < shots->posted && ucx_shot_ready(group); shot++) {
        ucx_work_t *work = shots->works[shot % COMM_WORKS_MAX];

        if (!shot_agrees(group, &work->request, shot)) {
            ucx_node_disagree(group, work->number);
            break;
        }
        if (work->request.count > 0)
            shot_sum(group, &work->request, shot);
        atomic_store_explicit(&shots->taken, shot + 1, memory_order_relaxed);
        atomic_store_explicit(&shots->ranks[group->place.local].taken, shot + 1,
                              memory_order_release);
        atomic_store_explicit(&work->state, COMM_DONE, memory_order_release);
        any = true;
        if (shot % RING_EVERY == 0) /* somebody may wait for a free slot */
            ucx_node_ring(group);
    }
    pthread_mutex_unlock(&group->node.lock);
    return any;
}
