/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Different calls in one collective: see ucx_calls.h. */
#include "comm/ucx_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "comm/ucx_group.h"

/* A collective that takes longer is told. */
#define CALL_SECONDS 0.1

static ucx_call_t call_of(const ucx_work_t *work)
{
    const comm_request_t *what = &work->request;

    return (ucx_call_t){.number = work->number + 1,
                        .count = (int64_t)what->count,
                        .root = what->root,
                        .kind = (uint8_t)what->kind,
                        .type = (uint8_t)what->type,
                        .op = (uint8_t)what->op,
                        .arena = atomic_load(&work->node) != 0 &&
                                 atomic_load(&work->way) == WAY_SLOT};
}

static bool calls_equal(const ucx_call_t *a, const ucx_call_t *b)
{
    return a->count == b->count && a->root == b->root && a->kind == b->kind &&
           a->type == b->type && a->op == b->op && a->arena == b->arena;
}

/* Kind, type, operation and arena as they are, the rest hashed. */
static uint32_t call_digest(const ucx_call_t *call)
{
    int64_t rest[2] = {call->count, call->root};
    uint64_t hash = hash_bytes(rest, sizeof rest) >> 40;
    uint64_t exact = (uint64_t)call->kind | (uint64_t)call->type << 3 |
                     (uint64_t)call->op << 6 | (uint64_t)call->arena << 8;

    return (uint32_t)((exact | hash << 9) &
                      ((UINT64_C(1) << UCX_DIGEST_BITS) - 1));
}

static void call_print(const ucx_call_t *call, const char *arena, char *text,
                       size_t room)
{
    comm_request_t request = {.kind = (comm_kind_t)call->kind,
                              .count = (size_t)call->count,
                              .type = (comm_type_t)call->type,
                              .op = (comm_op_t)call->op,
                              .root = call->root};
    size_t used;

    comm_request_print(&request, text, room);
    used = strlen(text);
    snprintf(text + used, room - used, "%s", arena);
}

static const char *arena_words(const ucx_call_t *a, const ucx_call_t *b)
{
    if (a->arena == b->arena)
        return "";
    return a->arena ? ", in an arena" : ", in no arena";
}

/* Ranks [a] and [b] called different things. */
static void calls_differ(ucx_group_t *group, int a, const ucx_call_t *one,
                         int b, const ucx_call_t *other)
{
    char first[96], second[96];
    err_t fault = ERR_INIT;

    if (atomic_load(&group->failed))
        return;
    call_print(one, arena_words(one, other), first, sizeof first);
    call_print(other, arena_words(other, one), second, sizeof second);
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d on %s called %s, rank %d on %s "
            "%s: all must start the same collectives in the same order",
            one->number - 1, comm_rank_name(&group->base, a),
            group->base.hellos[a].host, first, comm_rank_name(&group->base, b),
            group->base.hellos[b].host, second);
    ucx_group_fail(group, &fault);
}

static void calls_compare(ucx_group_t *group, int from, const ucx_call_t *call)
{
    const ucx_call_t *mine =
        &group->calls.begun[(call->number - 1) % UCX_CALLS];
    int rank = group->base.rank;

    if (call->number == 0 || mine->number != call->number ||
        calls_equal(mine, call))
        return;
    if (rank < from)
        calls_differ(group, rank, mine, from, call);
    else
        calls_differ(group, from, call, rank, mine);
}

/* From now on what others called is compared with [call], of this rank. */
static void call_remember(ucx_group_t *group, const ucx_call_t *call)
{
    ucx_calls_t *calls = &group->calls;

    calls->begun[(call->number - 1) % UCX_CALLS] = *call;
    for (int rank = 0; call->number <= calls->ahead && rank < group->base.size;
         rank++)
        calls_compare(group, rank, &group->peers[rank].call);
}

uint32_t ucx_calls_begin(ucx_group_t *group, const ucx_work_t *work)
{
    ucx_call_t call = call_of(work);

    if (work->started + CALL_SECONDS < group->tick_at)
        group->tick_at = work->started + CALL_SECONDS;
    call_remember(group, &call);
    return call_digest(&call);
}

void ucx_calls_sleep(ucx_group_t *group, const ucx_work_t *work)
{
    ucx_call_t call = call_of(work);

    pthread_mutex_lock(&group->lock);
    group->calls.slept = call;
    pthread_mutex_unlock(&group->lock);
}

/* What the owner sleeps for, if nothing is older and it has begun (*since);
 * number 0: it does not. */
static ucx_call_t call_slept(ucx_group_t *group, double *since)
{
    uint64_t oldest = ucx_node_oldest(group, since);
    ucx_call_t call;

    pthread_mutex_lock(&group->lock);
    call = group->calls.slept;
    pthread_mutex_unlock(&group->lock);
    if (call.number != oldest + 1)
        call.number = 0;
    return call;
}

/* The oldest that is under way; number 0: none. */
static ucx_call_t call_oldest(ucx_group_t *group, double *since)
{
    ucx_call_t oldest = call_slept(group, since);

    for (int i = 0; i < UCX_ACTIVE; i++) {
        const ucx_work_t *work = group->active[i].work;

        if (work == NULL ||
            (oldest.number > 0 && oldest.number <= work->number + 1))
            continue;
        oldest = call_of(work);
        *since = work->started;
    }
    return oldest;
}

double ucx_calls_tick(ucx_group_t *group, double now, double instant)
{
    double since = now, due;
    ucx_call_t call = call_oldest(group, &since);

    if (call.number == 0 || group->calls.told == call.number)
        return instant;
    due = since + CALL_SECONDS;
    if (now >= due) {
        group->calls.told = call.number;
        group->calls.mine = call;
        call_remember(group, &call);
        ucx_notes_want(group, NOTE_CALL);
        return instant;
    }
    return due < instant ? due : instant;
}

void ucx_calls_heard(ucx_group_t *group, int from, const ucx_call_t *call)
{
    if (call->number == 0 || call->kind > COMM_BARRIER ||
        call->type >= COMM_TYPES || call->op >= COMM_OPS)
        return;
    group->peers[from].call = *call;
    if (call->number > group->calls.ahead)
        group->calls.ahead = call->number;
    calls_compare(group, from, call);
}
