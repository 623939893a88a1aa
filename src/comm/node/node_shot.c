/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One-shot slots: see node_shot.h. */
#include "comm/node/node_shot.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_sum.h"

/* Bytes of data beside the flag. */
#define SHOT_HEAD (MEM_ALIGN - offsetof(shot_slot_t, data))

#define RING_EVERY (SHOTS / 4)

bool node_shot_fits(const node_t *node, size_t bytes)
{
    return bytes <= SHOT_BYTES &&
           bytes * (size_t)node->place.count <= SHOT_BYTES_ALL;
}

/* Two ranks swap their slots each time around: who has read one has it in its
 * cache when it writes there next. */
static shot_slot_t *shot_slot(const node_t *node, int local, uint64_t shot)
{
    if (node->place.count == 2)
        local ^= (int)(shot / SHOTS % 2);
    return &node->shots.ranks[local].slots[shot % SHOTS];
}

/* ---- post ---------------------------------------------------------------- */

/* Have all ranks taken what is in the slot of the next shot? */
static bool slot_free(node_t *node)
{
    node_shots_t *shots = &node->shots;

    if (shots->posted < shots->floor + SHOTS)
        return true;
    shots->floor = shots->posted;
    for (int i = 0; i < node->place.count; i++) {
        uint64_t taken = atomic_load(&shots->ranks[i].taken);

        if (taken < shots->floor)
            shots->floor = taken;
    }
    return shots->posted < shots->floor + SHOTS;
}

/* The line of the flag comes last: others look at it all the time, and would
 * take it away between two stores. */
static void slot_write(node_t *node, const comm_request_t *request,
                       uint64_t shot)
{
    shot_slot_t *slot = shot_slot(node, node->place.local, shot);
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
static void shots_post(node_t *node)
{
    node_shots_t *shots = &node->shots;
    uint64_t before = shots->posted;

    while (shots->posted < atomic_load(&shots->begun) && slot_free(node)) {
        const node_work_t *work = shots->works[shots->posted % COMM_WORKS_MAX];

        slot_write(node, work->request, shots->posted++);
    }
    if (shots->posted != before)
        node_ring(node);
}

void node_shot_start(node_t *node, node_work_t *work)
{
    node_shots_t *shots = &node->shots;

    node_lock(node);
    check(atomic_load(&shots->begun) - atomic_load(&shots->taken) <
              COMM_WORKS_MAX,
          "%llu shots have begun, %llu are taken",
          (unsigned long long)atomic_load(&shots->begun),
          (unsigned long long)atomic_load(&shots->taken));
    shots->works[atomic_load(&shots->begun) % COMM_WORKS_MAX] = work;
    atomic_fetch_add(&shots->begun, 1);
    shots_post(node);
    node_unlock(node);
}

bool node_shot_busy(const node_t *node)
{
    const node_shots_t *shots = &node->shots;

    return atomic_load_explicit(&shots->taken, memory_order_relaxed) <
           atomic_load_explicit(&shots->begun, memory_order_relaxed);
}

/* ---- take ---------------------------------------------------------------- */

bool node_shot_ready(const node_t *node)
{
    uint64_t shot =
        atomic_load_explicit(&node->shots.taken, memory_order_relaxed);

    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&shot_slot(node, i, shot)->flag,
                                 memory_order_acquire) != shot + 1)
            return false;
    return true;
}

/* Do all ranks ask for the same? */
static bool shot_agrees(const node_t *node, const comm_request_t *request,
                        uint64_t shot)
{
    for (int i = 0; i < node->place.count; i++) {
        const shot_slot_t *slot = shot_slot(node, i, shot);

        if (slot->count != request->count ||
            slot->type != (uint16_t)request->type ||
            slot->op != (uint16_t)request->op)
            return false;
    }
    return true;
}

static void shot_sum(node_t *node, const comm_request_t *request, uint64_t shot)
{
    char **parts = node->parts;

    for (int i = 0; i < node->place.count; i++)
        parts[i] = shot_slot(node, i, shot)->data;
    if (node->place.count == 2)
        node_lines_own(parts[!node->place.local], comm_request_bytes(request));
    parts[node->place.local] = request->data; /* the same, and nearer */
    if (node->place.count == 2 && !comm_type_rounds(request->type))
        comm_reduce(request->data, parts[0], parts[1], request->count,
                    request->type, request->op);
    else
        node_sum_into(parts, node->place.count, request->count, request->type,
                      request->op, request->data);
}

bool node_shot_go(node_t *node)
{
    node_shots_t *shots = &node->shots;
    bool any = false;

    node_lock(node);
    shots_post(node);
    for (uint64_t shot = atomic_load(&shots->taken);
         shot < shots->posted && node_shot_ready(node); shot++) {
        node_work_t *work = shots->works[shot % COMM_WORKS_MAX];

        if (!shot_agrees(node, work->request, shot)) {
            node_board_disagree(node, work->number);
            break;
        }
        if (work->request->count > 0)
            shot_sum(node, work->request, shot);
        atomic_store_explicit(&shots->taken, shot + 1, memory_order_relaxed);
        atomic_store_explicit(&shots->ranks[node->place.local].taken, shot + 1,
                              memory_order_release);
        atomic_store_explicit(&work->done, true, memory_order_release);
        any = true;
        if (shot % RING_EVERY == 0) /* somebody may wait for a free slot */
            node_ring(node);
    }
    node_unlock(node);
    return any;
}
