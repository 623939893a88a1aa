/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The internals of a watch: watch.c (notes, deadlines, messages about faults),
 * watch_calls.c (different calls), watch_device.c (collectives of devices),
 * watch_liveness.c (who is to blame), watch_peers.c (what they share). */
#ifndef CDDP_COMM_WATCH_PRIV_H
#define CDDP_COMM_WATCH_PRIV_H

#include "comm/watch/watch.h"
#include "comm/watch/watch_liveness.h"

#define WATCH_CALLS 256 /* number of calls that are remembered */

typedef struct watch_peer {
    bool neighbour; /* exchanges beats with this rank */
    bool connected; /* has a connection to this rank */
    bool sending;   /* [note] is being sent */
    /* Bit 1 << kind is set for each note that has to be sent. */
    unsigned wanted;
    watch_call_t call; /* the latest call that it told */
    watch_note_t note;
} watch_peer_t;

struct watch {
    watch_config_t config;
    liveness_t liveness;
    watch_peer_t *peers; /* [size] */
    double beat_at;      /* instant of the next beat */
    double tick_at;      /* instant by which to look at deadlines */
    bool notes_due;      /* a note is requested and could be sent */
    bool failed;         /* a fault was found here, or passed to watch_tell */
    err_t fault;         /* the fault passed to watch_tell */
    bool leaving;        /* good-byes were requested */
    uint64_t moved;      /* latest value of view.moves, and */
    double moved_at;     /* the instant when it changed */
    uint64_t device;  /* collectives begun and ended on this rank's device, */
    double device_at; /* and the instant when their sum changed */
    int left_rank;    /* of those that left, the one that had finished the */
    uint64_t left_finished;          /* fewest collectives; -1: nobody left */
    watch_call_t begun[WATCH_CALLS]; /* calls of this rank, indexed by number */
    watch_call_t mine;               /* call to be told in a note */
    uint64_t told;                   /* number of the latest call told */
    uint64_t ahead; /* highest number in a call of another rank */
};

/* ---- watch_peers.c ------------------------------------------------------- */

/* The name of [rank] in faults. */
int watch_name(const watch_t *watch, int rank);
const char *watch_host(const watch_t *watch, int rank);
void watch_fail(watch_t *watch, const err_t *fault);
/* Request a note of [kind] to all neighbours. Good-byes also go to all ranks
 * that have a connection to this one. */
void watch_want(watch_t *watch, watch_kind_t kind);

/* ---- watch_device.c ------------------------------------------------------ */

/* Fail if a collective does not end on the device of this rank. */
void watch_device_check(watch_t *watch, const watch_view_t *view, double now);

/* ---- watch_calls.c ------------------------------------------------------- */

/* Tell the neighbours the call in [view] if it takes long. Returns the instant
 * of the next check, [instant] at the latest. */
double watch_calls_tick(watch_t *watch, const watch_view_t *view, double now,
                        double instant);
/* Handle [call], which rank [from] called. */
void watch_calls_hear(watch_t *watch, int from, const watch_call_t *call);

#endif
