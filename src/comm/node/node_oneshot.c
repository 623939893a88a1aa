/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One-shot collectives: see node_oneshot.h. */
#include "comm/node/node_oneshot.h"

#include <string.h>

#include "base/check.h"
#include "comm/node/node_control.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_sum.h"

/* Bytes of data in the cache line that contains the flag. */
#define HEAD_BYTES (MEM_ALIGN - offsetof(oneshot_slot_t, data))

/* Ranks that wait for a free slot are woken once in NOTIFY_EVERY numbers. */
#define NOTIFY_EVERY (ONESHOT_SLOTS / 4)

size_t node_oneshot_most(const node_t *node)
{
    size_t share = ONESHOT_BYTES_ALL / (size_t)node->place.count;

    return share < ONESHOT_BYTES ? share : ONESHOT_BYTES;
}

/* The slot of rank [local] for number [seq]. If there are two ranks, they swap
 * their rings after each pass over the ring: then a rank writes to a slot that
 * it has read before, which is in its cache. */
static oneshot_slot_t *slot_of(const node_t *node, int local, uint64_t seq)
{
    check(local >= 0 && local < node->place.count, "slot of rank %d of %d",
          local, node->place.count);
    if (node->place.count == 2)
        local ^= (int)(seq / ONESHOT_SLOTS % 2);
    return &node->oneshot.ranks[local].slots[seq % ONESHOT_SLOTS];
}

/* ---- post ---------------------------------------------------------------- */

/* Return whether all ranks have consumed the contents of the slot for the next
 * number. */
static bool slot_is_free(node_t *node)
{
    node_oneshot_t *oneshot = &node->oneshot;
    uint64_t before = oneshot->released;

    if (oneshot->posted < oneshot->released + ONESHOT_SLOTS)
        return true;
    oneshot->released = oneshot->posted;
    for (int i = 0; i < node->place.count; i++) {
        uint64_t consumed = atomic_load(&oneshot->ranks[i].consumed);

        if (consumed < oneshot->released)
            oneshot->released = consumed;
    }
    check(oneshot->released >= before,
          "all ranks had consumed %llu one-shots, and now %llu",
          (unsigned long long)before, (unsigned long long)oneshot->released);
    return oneshot->posted < oneshot->released + ONESHOT_SLOTS;
}

/* The cache line of the flag is written last: other ranks poll it, and would
 * take the line away between two stores. */
static void slot_write(node_t *node, const comm_request_t *request,
                       uint64_t seq)
{
    oneshot_slot_t *slot = slot_of(node, node->place.local, seq);
    size_t bytes = comm_request_bytes(request);
    size_t head = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;

    check(bytes <= ONESHOT_BYTES, "%zu bytes in a one-shot slot of %zu", bytes,
          (size_t)ONESHOT_BYTES);
    check(atomic_load(&slot->flag) ==
              (seq < ONESHOT_SLOTS ? 0 : seq + 1 - ONESHOT_SLOTS),
          "one-shot %llu is written over %llu", (unsigned long long)seq,
          (unsigned long long)atomic_load(&slot->flag) - 1);
    if (bytes > head)
        memcpy(slot->data + head, (const char *)request->data + head,
               bytes - head);
    slot->count = (uint32_t)request->count; /* 0 for a barrier */
    slot->type = (uint16_t)request->type;
    slot->op = (uint16_t)request->op;
    if (head > 0)
        memcpy(slot->data, request->data, head);
    atomic_store_explicit(&slot->flag, seq + 1, memory_order_release);
}

/* Post the works for which there is a free slot. Under node.lock. */
static void slots_post(node_t *node)
{
    node_oneshot_t *oneshot = &node->oneshot;
    uint64_t before = oneshot->posted;

    check(node_is_locked(node), "rank %d posts one-shot %llu without the lock",
          node->config.rank, (unsigned long long)before);
    while (oneshot->posted < atomic_load(&oneshot->started) &&
           slot_is_free(node)) {
        const node_work_t *work =
            oneshot->works[oneshot->posted % COMM_WORKS_MAX];

        slot_write(node, work->request, oneshot->posted++);
    }
    if (oneshot->posted != before)
        node_notify(node);
}

void node_oneshot_start(node_t *node, node_work_t *work)
{
    node_oneshot_t *oneshot = &node->oneshot;

    check(node->place.nodes == 1, "a one-shot over %d nodes",
          node->place.nodes);
    node_lock(node);
    check(atomic_load(&oneshot->started) - atomic_load(&oneshot->consumed) <
              COMM_WORKS_MAX,
          "%llu one-shots are started, %llu are consumed",
          (unsigned long long)atomic_load(&oneshot->started),
          (unsigned long long)atomic_load(&oneshot->consumed));
    oneshot->works[atomic_load(&oneshot->started) % COMM_WORKS_MAX] = work;
    atomic_fetch_add(&oneshot->started, 1);
    slots_post(node);
    node_unlock(node);
}

bool node_oneshot_busy(const node_t *node)
{
    const node_oneshot_t *oneshot = &node->oneshot;

    return atomic_load_explicit(&oneshot->consumed, memory_order_relaxed) <
           atomic_load_explicit(&oneshot->started, memory_order_relaxed);
}

/* ---- consume ------------------------------------------------------------- */

bool node_oneshot_ready(const node_t *node)
{
    uint64_t seq =
        atomic_load_explicit(&node->oneshot.consumed, memory_order_relaxed);

    for (int i = 0; i < node->place.count; i++)
        if (atomic_load_explicit(&slot_of(node, i, seq)->flag,
                                 memory_order_acquire) != seq + 1)
            return false;
    return true;
}

/* Return whether all ranks request the same operation as [request]. */
static bool slots_agree(const node_t *node, const comm_request_t *request,
                        uint64_t seq)
{
    for (int i = 0; i < node->place.count; i++) {
        const oneshot_slot_t *slot = slot_of(node, i, seq);

        if (slot->count != request->count ||
            slot->type != (uint16_t)request->type ||
            slot->op != (uint16_t)request->op)
            return false;
    }
    return true;
}

/* Sum the slots of all ranks into this rank's buffer. Under node.lock. */
static void slots_sum(node_t *node, const comm_request_t *request, uint64_t seq)
{
    char **buffers = node->buffers;

    for (int i = 0; i < node->place.count; i++)
        buffers[i] = slot_of(node, i, seq)->data;
    if (node->place.count == 2)
        node_prefetch_write(buffers[!node->place.local],
                            comm_request_bytes(request));
    /* Equal to the contents of this rank's slot, and closer in the cache. */
    buffers[node->place.local] = request->data;
    if (node->place.count == 2 && !comm_type_rounds(request->type))
        comm_reduce(request->data, buffers[0], buffers[1], request->count,
                    request->type, request->op);
    else
        node_sum_into(buffers, node->place.count, request->count, request->type,
                      request->op, request->data);
}

/* Note that this rank has the result of number [seq]. Under node.lock. */
static void slot_consumed(node_t *node, node_work_t *work, uint64_t seq)
{
    node_oneshot_t *oneshot = &node->oneshot;

    check(node_is_locked(node) && seq == atomic_load(&oneshot->consumed) &&
              seq < oneshot->posted,
          "one-shot %llu is consumed, of %llu posted", (unsigned long long)seq,
          (unsigned long long)oneshot->posted);
    check(!atomic_load(&work->done), "one-shot %llu is consumed twice",
          (unsigned long long)seq);
    atomic_store_explicit(&oneshot->consumed, seq + 1, memory_order_relaxed);
    atomic_store_explicit(&oneshot->ranks[node->place.local].consumed, seq + 1,
                          memory_order_release);
    atomic_store_explicit(&work->done, true, memory_order_release);
    if (seq % NOTIFY_EVERY == 0) /* a rank may wait for a free slot */
        node_notify(node);
}

bool node_oneshot_progress(node_t *node)
{
    node_oneshot_t *oneshot = &node->oneshot;
    bool any = false;

    node_lock(node);
    slots_post(node);
    for (uint64_t seq = atomic_load(&oneshot->consumed);
         seq < oneshot->posted && node_oneshot_ready(node); seq++) {
        node_work_t *work = oneshot->works[seq % COMM_WORKS_MAX];

        if (!slots_agree(node, work->request, seq)) {
            node_control_differ(node, work->number);
            break;
        }
        if (work->request->count > 0)
            slots_sum(node, work->request, seq);
        slot_consumed(node, work, seq);
        any = true;
    }
    node_unlock(node);
    return any;
}
