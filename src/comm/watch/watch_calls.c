/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds ranks that start different collectives under one number. The tag of
 * each message of a collective contains a digest of the call, so that data of
 * different calls is never mixed. Ranks whose calls differ therefore wait for
 * each other. After a moment each tells its neighbours its call, and a rank
 * whose call differs fails the group for all. Collectives within a node are
 * told, too, when their owner sleeps: if only some ranks of a node have their
 * data in an arena, no other message would be sent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "comm/watch/watch_priv.h"

/* A collective that takes more seconds is told to the neighbours. */
#define CALL_SECONDS 0.1

watch_call_t watch_call_of(const comm_request_t *request, uint64_t number,
                           bool arena)
{
    return (watch_call_t){.number = number + 1,
                          .count = (int64_t)request->count,
                          .root = request->root,
                          .kind = (uint8_t)request->kind,
                          .type = (uint8_t)request->type,
                          .op = (uint8_t)request->op,
                          .arena = arena};
}

static bool calls_equal(const watch_call_t *a, const watch_call_t *b)
{
    return a->count == b->count && a->root == b->root && a->kind == b->kind &&
           a->type == b->type && a->op == b->op && a->arena == b->arena;
}

/* The digest contains kind, type, operation and arena unchanged, and a hash of
 * the rest. */
static uint32_t call_digest(const watch_call_t *call)
{
    int64_t rest[2] = {call->count, call->root};
    uint64_t hash = hash_bytes(rest, sizeof rest) >> 40;
    uint64_t exact = (uint64_t)call->kind | (uint64_t)call->type << 3 |
                     (uint64_t)call->op << 6 | (uint64_t)call->arena << 8;

    return (uint32_t)((exact | hash << 9) &
                      ((UINT64_C(1) << WATCH_DIGEST_BITS) - 1));
}

/* Describe [call]. [arena]: words about the place of its data. */
static void call_print(const watch_call_t *call, const char *arena, char *text,
                       size_t bytes)
{
    comm_request_t request = {.kind = (comm_kind_t)call->kind,
                              .count = (size_t)call->count,
                              .type = (comm_type_t)call->type,
                              .op = (comm_op_t)call->op,
                              .root = call->root};
    size_t used;

    comm_request_print(&request, text, bytes);
    used = strlen(text);
    snprintf(text + used, bytes - used, "%s", arena);
}

static const char *arena_words(const watch_call_t *a, const watch_call_t *b)
{
    if (a->arena == b->arena)
        return "";
    return a->arena ? ", in an arena" : ", in no arena";
}

/* Fail because rank [a] called [one] and rank [b] called [other]. */
static void calls_differ(watch_t *watch, int a, const watch_call_t *one, int b,
                         const watch_call_t *other)
{
    char first[96], second[96];
    err_t fault = ERR_INIT;

    if (watch->failed)
        return;
    call_print(one, arena_words(one, other), first, sizeof first);
    call_print(other, arena_words(other, one), second, sizeof second);
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d on %s called %s, rank %d on %s "
            "%s: all must start the same collectives in the same order",
            one->number - 1, watch_name(watch, a), watch_host(watch, a), first,
            watch_name(watch, b), watch_host(watch, b), second);
    watch_fail(watch, &fault);
}

static void calls_compare(watch_t *watch, int from, const watch_call_t *call)
{
    const watch_call_t *mine = &watch->begun[(call->number - 1) % WATCH_CALLS];
    int rank = watch->config.rank;

    if (call->number == 0 || mine->number != call->number ||
        calls_equal(mine, call))
        return;
    if (rank < from)
        calls_differ(watch, rank, mine, from, call);
    else
        calls_differ(watch, from, call, rank, mine);
}

/* Remember [call], a call of this rank, to compare those of other ranks with
 * it. */
static void call_remember(watch_t *watch, const watch_call_t *call)
{
    watch_call_t *place = &watch->begun[(call->number - 1) % WATCH_CALLS];

    check(call->number > 0 && call->number >= place->number,
          "call %llu takes the place of call %llu",
          (unsigned long long)call->number, (unsigned long long)place->number);
    *place = *call;
    for (int rank = 0;
         call->number <= watch->ahead && rank < watch->config.size; rank++)
        calls_compare(watch, rank, &watch->peers[rank].call);
}

uint32_t watch_begin(watch_t *watch, const watch_call_t *call, double started)
{
    if (started + CALL_SECONDS < watch->tick_at)
        watch->tick_at = started + CALL_SECONDS;
    call_remember(watch, call);
    return call_digest(call);
}

double watch_calls_tick(watch_t *watch, const watch_view_t *view, double now,
                        double instant)
{
    double due = view->called + CALL_SECONDS;

    if (view->call.number == 0 || watch->told == view->call.number)
        return instant;
    if (now < due)
        return due < instant ? due : instant;
    watch->told = view->call.number;
    watch->mine = view->call;
    call_remember(watch, &view->call);
    watch_want(watch, WATCH_CALL);
    return instant;
}

void watch_calls_hear(watch_t *watch, int from, const watch_call_t *call)
{
    if (call->number == 0 || call->kind > COMM_BARRIER ||
        call->type >= COMM_TYPES || call->op >= COMM_OPS)
        return;
    watch->peers[from].call = *call;
    if (call->number > watch->ahead)
        watch->ahead = call->number;
    calls_compare(watch, from, call);
}
