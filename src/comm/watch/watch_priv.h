/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The inside of a watch: watch.c (notes, deadlines, sentences about faults),
 * watch_calls.c (different calls), watch_liveness.c (who is to blame),
 * watch_peers.c (what they share). */
#ifndef CDDP_COMM_WATCH_PRIV_H
#define CDDP_COMM_WATCH_PRIV_H

#include "comm/watch/watch.h"
#include "comm/watch/watch_liveness.h"

#define WATCH_CALLS 256 /* that are remembered */

typedef struct watch_peer {
    bool neighbour;    /* exchanges beats with this rank */
    bool connected;    /* has a connection to this rank */
    bool sending;      /* [note] is being sent */
    unsigned wanted;   /* a bit, 1 << kind, for each note that is to be sent */
    watch_call_t call; /* the last one that it told */
    watch_note_t note;
} watch_peer_t;

struct watch {
    watch_config_t config;
    liveness_t liveness;
    watch_peer_t *peers; /* [size] */
    double beat_at;      /* instant of the next beat */
    double tick_at;      /* instant by which to look at deadlines */
    bool notes_due;      /* some note is wanted that could be sent */
    bool failed;         /* a fault was found here, or watch_tell told one */
    err_t fault;         /* the one that watch_tell told */
    bool leaving;        /* good-byes were wanted */
    uint64_t moved;      /* view.moves, and */
    double moved_at;     /* the instant at which it had changed */
    int left_rank;       /* of those that left, the one that had finished the */
    uint64_t left_finished;          /* fewest collectives; -1: nobody left */
    watch_call_t begun[WATCH_CALLS]; /* calls of this rank, by number */
    watch_call_t mine;               /* to be told in a note */
    uint64_t told;                   /* number of the last call told */
    uint64_t ahead;                  /* highest number heard in a call */
};

/* ---- watch_peers.c
 * ------------------------------------------------------------- */

/* What faults call [rank]. */
int watch_name(const watch_t *watch, int rank);
const char *watch_host(const watch_t *watch, int rank);
void watch_fail(watch_t *watch, const err_t *fault);
/* Want a note of [kind] sent to all neighbours. Good-byes also go to all ranks
 * that have a connection to this one. */
void watch_want(watch_t *watch, watch_kind_t kind);

/* ---- watch_calls.c ------------------------------------------------------- */

/* Tell the neighbours the call in [view] if it takes long. Returns the instant
 * by which to look again, [instant] at the latest. */
double watch_calls_tick(watch_t *watch, const watch_view_t *view, double now,
                        double instant);
/* Rank [from] called [call]. */
void watch_calls_hear(watch_t *watch, int from, const watch_call_t *call);

#endif
