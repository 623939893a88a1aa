/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Functions of a watch for notes and calls: names, faults, requested notes. */
#include "comm/watch/watch_priv.h"

int watch_name(const watch_t *watch, int rank)
{
    return (int)watch->config.hellos[rank].name;
}

const char *watch_host(const watch_t *watch, int rank)
{
    return watch->config.hellos[rank].host;
}

void watch_fail(watch_t *watch, const err_t *fault)
{
    watch->failed = true;
    watch->config.fail(watch->config.context, fault);
}

void watch_want(watch_t *watch, watch_kind_t kind)
{
    for (int rank = 0; rank < watch->config.size; rank++) {
        watch_peer_t *peer = &watch->peers[rank];

        if (rank == watch->config.rank || watch->liveness.peers[rank].left)
            continue;
        if (peer->neighbour || (kind == WATCH_BYE && peer->connected))
            peer->wanted |= 1u << kind;
    }
    watch->notes_due = true;
}
