/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds the rank for whose device the devices of other ranks wait.
 *
 * A device that is in a collective waits for those that have not begun it. So
 * the rank to blame is the one whose device is behind all others, if nothing of
 * it moves any more: it has begun fewer collectives, or is still in one that
 * others have ended. If all devices are in the same collective, nobody can tell
 * whose device, or which part of the network, is the cause.
 */
#include <inttypes.h>

#include "comm/watch/watch_priv.h"

/* Before a rank blames its own device, or nobody, it waits for so many beats
 * more: another rank may have found the cause and may just be telling it. */
#define LATE_BEATS 3

/* How many begins and ends of collectives a device has passed. */
static uint64_t beat_place(const watch_beat_t *beat)
{
    return beat->begun + beat->ended;
}

static bool peer_counts(const watch_t *watch, int rank)
{
    const liveness_peer_t *peer = &watch->liveness.peers[rank];

    return rank != watch->config.rank && watch->peers[rank].neighbour &&
           !peer->parted && peer->lost <= 0;
}

/* Find the ranks whose devices are furthest behind and furthest ahead; -1:
 * there is no other rank. */
static void extremes_find(const watch_t *watch, int *behind, int *ahead)
{
    const liveness_peer_t *peers = watch->liveness.peers;

    *behind = *ahead = -1;
    for (int rank = 0; rank < watch->config.size; rank++) {
        if (!peer_counts(watch, rank))
            continue;
        if (*behind < 0 ||
            beat_place(&peers[rank].last) < beat_place(&peers[*behind].last))
            *behind = rank;
        if (*ahead < 0 ||
            beat_place(&peers[rank].last) > beat_place(&peers[*ahead].last))
            *ahead = rank;
    }
}

static void peer_blame(watch_t *watch, int culprit, uint64_t number)
{
    const watch_beat_t *last = &watch->liveness.peers[culprit].last;
    const char *host = watch_host(watch, culprit);
    const int name = watch_name(watch, culprit);
    const bool inside = last->begun > last->ended;
    err_t fault = ERR_INIT;

    err_set_peer(&fault, name, host,
                 "rank %d on %s: its device %s collective %" PRIu64
                 " for %g s (it last reported step %" PRId64
                 ", %s); the device of rank %d waits in collective %" PRIu64,
                 name, host, inside ? "has not ended" : "has not begun",
                 inside ? last->begun : last->begun + 1, watch->config.timeout,
                 last->step,
                 last->phase[0] != '\0' ? last->phase : "no phase yet",
                 watch_name(watch, watch->config.rank), number);
    watch_fail(watch, &fault);
}

static void own_blame(watch_t *watch, int ahead, uint64_t number)
{
    const int rank = watch->config.rank, name = watch_name(watch, rank);
    const char *host = watch_host(watch, rank);
    err_t fault = ERR_INIT;

    err_set_peer(&fault, name, host,
                 "rank %d on %s: its device has not ended collective %" PRIu64
                 " for %g s, but that of rank %d has",
                 name, host, number, watch->config.timeout,
                 watch_name(watch, ahead));
    watch_fail(watch, &fault);
}

static void nobody_blame(watch_t *watch, uint64_t number)
{
    err_t fault = ERR_INIT;

    err_set_peer(&fault, -1, NULL,
                 "collective %" PRIu64 " has not ended for %g s on the device "
                 "of rank %d, although it has begun on all devices: check the "
                 "devices and the network between them",
                 number, watch->config.timeout,
                 watch_name(watch, watch->config.rank));
    watch_fail(watch, &fault);
}

/* Seconds after which no other rank is going to be blamed. If some ranks send
 * no beats to this one, it does not know whether their devices are behind. */
static double late_seconds(const watch_t *watch)
{
    const double timeout = watch->config.timeout;

    for (int rank = 0; rank < watch->config.size; rank++)
        if (rank != watch->config.rank && !watch->peers[rank].neighbour)
            return 2 * timeout;
    return timeout + LATE_BEATS * watch_interval(timeout);
}

void watch_device_check(watch_t *watch, const watch_view_t *view, double now)
{
    const liveness_peer_t *peers = watch->liveness.peers;
    const uint64_t place = view->device.begun + view->device.ended;
    int behind, ahead;

    if (place != watch->device || view->device.begun <= view->device.ended) {
        watch->device = place;
        watch->device_at = now;
    }
    if (watch->failed || now - watch->device_at < watch->config.timeout)
        return;
    extremes_find(watch, &behind, &ahead);
    if (behind >= 0 && beat_place(&peers[behind].last) < place) {
        if (now - peers[behind].moved >= watch->config.timeout)
            peer_blame(watch, behind, view->device.begun);
        return;
    }
    if (now - watch->device_at < late_seconds(watch))
        return;
    if (ahead >= 0 && beat_place(&peers[ahead].last) > place)
        own_blame(watch, ahead, view->device.begun);
    else
        nobody_blame(watch, view->device.begun);
}
