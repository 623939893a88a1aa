/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds the rank to blame from the beats (internal to src/comm). It knows no
 * transport and no clock; the caller passes instants of clock_now, so that
 * tests can set the time.
 *
 * A peer is the culprit if no beat of it arrived for the timeout. It is also
 * the culprit if it sends beats, but its progress counter has not changed for
 * the timeout while this rank has been waiting as long in a collective that the
 * peer has not entered. A peer that itself waits is no suspect, and neither is
 * one that has parted: a rank that has answered our good-bye sends none of its
 * own. If this rank's own clock jumped (it was stopped), all deadlines start
 * again.
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
    double heard; /* instant of the last beat */
    double moved; /* instant when it or its device last made progress */
    /* Instant when its process or connection ended; 0: it did not. */
    double lost;
    bool watched; /* it sends beats to this rank */
    bool left;    /* it said good-bye */
    /* It said good-bye or answered ours: nothing more is expected of it. */
    bool parted;
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

/* Handle a beat of [rank]. */
void liveness_heard(liveness_t *liveness, int rank, const watch_beat_t *beat,
                    double now);

/* Report that the process of [rank] ended or the connection to it broke. It
 * becomes the culprit a moment later, unless its good-bye, or the news of
 * another culprit that caused its end, arrives first. */
void liveness_lost(liveness_t *liveness, int rank, double now);

/* To be called at least once per interval. Returns true if this rank's own
 * clock jumped; then all deadlines start again. */
bool liveness_tick(liveness_t *liveness, double now);

/*
 * Find a peer to blame at [now]. [pending] is the number of the oldest
 * collective that this rank has started and not finished (UINT64_MAX: none),
 * and [since] its start. Returns the culprit, or -1; *reason is set to what it
 * did ("is dead").
 */
int liveness_suspect(const liveness_t *liveness, uint64_t pending, double since,
                     double now, const char **reason);

/* The instant of the next check: [instant], or earlier if a peer is lost. */
double liveness_look(const liveness_t *liveness, double instant);

#endif
