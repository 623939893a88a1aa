/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/watch/watch_liveness.h"

#include "base/mem.h"
#include "comm/watch/watch.h"

/* Seconds to wait for the last notes of a lost peer: they are already in a
 * socket or in shared memory. */
#define LAST_WORDS 0.1

double watch_interval(double timeout)
{
    return timeout / 8 < 1 ? timeout / 8 : 1;
}

static void restart(liveness_t *liveness, double now)
{
    for (int rank = 0; rank < liveness->size; rank++) {
        liveness->peers[rank].heard = now;
        liveness->peers[rank].moved = now;
    }
}

err_code_t liveness_open(int rank, int size, double timeout, double now,
                         liveness_t *out, err_t *err)
{
    liveness_t made = {.rank = rank, .size = size, .timeout = timeout};
    err_code_t rc = mem_new(liveness_peer_t, (size_t)size, "comm liveness",
                            &made.peers, err);

    if (rc != ERR_OK)
        return rc;
    made.ticked = now;
    restart(&made, now);
    *out = made;
    return ERR_OK;
}

void liveness_close(liveness_t *liveness)
{
    mem_free(liveness->peers);
    liveness->peers = NULL;
}

void liveness_heard(liveness_t *liveness, int rank, const watch_beat_t *beat,
                    double now)
{
    liveness_peer_t *peer = &liveness->peers[rank];

    if (beat->progress != peer->last.progress || beat->waiting ||
        beat->begun != peer->last.begun || beat->ended != peer->last.ended)
        peer->moved = now;
    peer->heard = now;
    peer->last = *beat;
    peer->last.phase[WATCH_PHASE_MAX - 1] = '\0';
}

void liveness_lost(liveness_t *liveness, int rank, double now)
{
    if (liveness->peers[rank].lost <= 0)
        liveness->peers[rank].lost = now;
}

bool liveness_tick(liveness_t *liveness, double now)
{
    double allowed = watch_interval(liveness->timeout) + liveness->timeout / 4;
    bool jumped = now - liveness->ticked > allowed;

    liveness->ticked = now;
    if (jumped)
        restart(liveness, now);
    return jumped;
}

int liveness_suspect(const liveness_t *liveness, uint64_t pending, double since,
                     double now, const char **reason)
{
    double timeout = liveness->timeout;

    for (int rank = 0; rank < liveness->size; rank++) {
        const liveness_peer_t *peer = &liveness->peers[rank];

        if (rank == liveness->rank || peer->parted)
            continue;
        if (peer->lost > 0 && now - peer->lost >= LAST_WORDS)
            *reason = "died or lost its connection";
        else if (!peer->watched)
            continue;
        else if (now - peer->heard >= timeout)
            *reason = "gives no sign of life";
        else if (!peer->last.waiting && peer->last.entered <= pending &&
                 pending != UINT64_MAX && now - since >= timeout &&
                 now - peer->moved >= timeout)
            *reason = "makes no progress and others wait for it";
        else
            continue;
        return rank;
    }
    return -1;
}

double liveness_look(const liveness_t *liveness, double instant)
{
    for (int rank = 0; rank < liveness->size; rank++) {
        const liveness_peer_t *peer = &liveness->peers[rank];

        if (peer->lost > 0 && !peer->parted &&
            peer->lost + LAST_WORDS < instant)
            instant = peer->lost + LAST_WORDS;
    }
    return instant;
}
