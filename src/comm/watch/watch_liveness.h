/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Who is to blame: the bookkeeping of beats (internal to src/comm). It knows no
 * transport and no clock; the caller passes instants of clock_now, so that the
 * tests can make time.
 *
 * A peer is the culprit when no beat of it came for the timeout; or when it
 * beats but its progress counter has stood still for the timeout while this
 * rank has been waiting as long in a collective that the peer has not entered.
 * A peer that itself waits is no suspect, nor is one that has parted: who has
 * answered our good-bye sends none of its own. When this rank's own clock
 * jumped (it was stopped), all deadlines begin anew.
 *
 * Thread rule: one thread (the comm thread).
 */
#ifndef CDDP_COMM_WATCH_LIVENESS_H
#define CDDP_COMM_WATCH_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/watch/watch_note.h"

typedef struct liveness_peer {
    watch_beat_t last;
    double heard; /* last beat */
    double moved; /* progress last changed */
    double lost;  /* its process or connection ended; 0: no */
    bool watched; /* it beats for us */
    bool left;    /* it said good-bye */
    bool parted;  /* it did, or answered ours: it owes us nothing more */
} liveness_peer_t;

typedef struct liveness {
    int rank, size;
    double timeout;
    double ticked;
    liveness_peer_t *peers; /* [size] */
} liveness_t;

err_code_t liveness_open(int rank, int size, double timeout, double now,
                         liveness_t *out, err_t *err);
void liveness_close(liveness_t *liveness);

/* A beat of [rank] has come. */
void liveness_heard(liveness_t *liveness, int rank, const watch_beat_t *beat,
                    double now);

/* The process of [rank] ended or the connection to it broke. It is the culprit
 * a moment later, unless its good-bye (or the news of another culprit, whose
 * victim it is) is still on its way. */
void liveness_lost(liveness_t *liveness, int rank, double now);

/* To be called at least once per interval. Returns true if this rank's own
 * clock jumped; all deadlines begin anew. */
bool liveness_tick(liveness_t *liveness, double now);

/*
 * Is a peer to blame at [now]? [pending]: number of the oldest collective that
 * this rank has started and not finished, at [since] (UINT64_MAX: none).
 * Returns the culprit, or -1, and in *reason what it did ("is dead").
 */
int liveness_suspect(const liveness_t *liveness, uint64_t pending, double since,
                     double now, const char **reason);

/* When to look again at the latest, if a peer is lost; else [instant]. */
double liveness_look(const liveness_t *liveness, double instant);

#endif
