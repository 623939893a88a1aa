/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * watch: finds out that a rank of a group died, hangs, left early or called a
 * different collective, and tells all ranks about it.
 *
 * Ranks send each other notes (watch_note.h). Each rank sends beats to its
 * neighbours: to all other ranks of a small group, to those at distances 1, 2,
 * 4 ... in a large one. A rank that learns of a fault tells its neighbours
 * once. So all ranks know it within log2(size) hops, whichever ranks have died.
 *
 * A watch knows no transport and no clock. The caller hands it the notes that
 * arrive, the events of the transport and the time (in seconds, of clock_now),
 * and sends what the watch gives to config.send. After watch_open nothing is
 * allocated: at most one note to each rank is on its way, and notes that have
 * to follow are one bit for each kind. A rank that receives nothing therefore
 * costs one small message.
 *
 * Thread rule: one thread at a time; here the one that drives the group.
 */
#ifndef CDDP_COMM_WATCH_H
#define CDDP_COMM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/comm_ops.h"
#include "comm/watch/watch_note.h"

typedef struct watch watch_t;

#define WATCH_NONE UINT64_MAX /* no collective */

/* What this rank is doing. Collectives are numbered from 0 on. */
typedef struct watch_view {
    uint64_t started;  /* number of the next collective to be started */
    uint64_t finished; /* all collectives before this number are finished */
    const char *kind;  /* name of collective [finished], "all-reduce" */
    uint64_t progress; /* counter of signs that the owner makes progress */
    uint64_t moves;    /* counter of messages and segments that moved */
    int64_t step;      /* training step that was last reported, and */
    const char *phase; /* its phase; NULL: none yet */
    bool waiting;      /* the owner waits for others, or polled a moment ago */
    /* Collectives that are carried out now, by this rank's two threads. */
    uint64_t oldest, newest; /* WATCH_NONE: there are none */
    double since;            /* start of the oldest one */
    bool driven;             /* a thread of this rank is at work on one */
    /* The oldest call that is carried out and could be told to others. */
    watch_call_t call; /* number 0: none */
    double called;     /* its start */
} watch_view_t;

typedef struct watch_config {
    int rank, size;             /* this rank; ranks of the group */
    double timeout;             /* seconds: fault.timeout */
    const comm_hello_t *hellos; /* [size]: names and hosts; outlive the watch */
    void *context;              /* of the functions */
    void (*view)(void *context, watch_view_t *out);
    /* Start to send [note] to [rank]. True: it is still being sent, and the
     * caller tells the end of that by watch_sent. May call watch_lost. */
    bool (*send)(void *context, int rank, const watch_note_t *note);
    /* The group has failed. The first fault of several counts. */
    void (*fail)(void *context, const err_t *fault);
    /* This process did not run for a while: let all that is under way count as
     * started at [now]. */
    void (*resumed)(void *context, double now);
} watch_config_t;

err_code_t watch_open(const watch_config_t *config, double now, watch_t **out,
                      err_t *err);
/* NULL is allowed. */
void watch_close(watch_t *watch);

/* Seconds between two beats. A missed one or two must not matter. */
double watch_interval(double timeout);

/* ---- events -------------------------------------------------------------- */

/* [note] has arrived. It may hold any bytes. */
void watch_hear(watch_t *watch, const watch_note_t *note, double now);
/* The note to [rank] that was being sent has been sent, or never will be. */
void watch_sent(watch_t *watch, int rank);
/* There is a connection to [rank] from now on: it may watch that, too, and is
 * told when this rank leaves. */
void watch_connected(watch_t *watch, int rank);
/* The process of [rank] ended, or the connection to it broke. */
void watch_lost(watch_t *watch, int rank, double now);
/* Does [rank] exchange beats with this rank? */
bool watch_is_neighbour(const watch_t *watch, int rank);

/* ---- deadlines ----------------------------------------------------------- */

/* This rank begins to carry out [call], which it started at [started]. Returns
 * the call's digest, of WATCH_DIGEST_BITS bits. */
uint32_t watch_begin(watch_t *watch, const watch_call_t *call, double started);
/* Fail if a rank left before it finished a collective that is carried out. */
void watch_check_left(watch_t *watch);
/* If that is due: look at deadlines, and want beats sent. */
void watch_tick(watch_t *watch, double now);
/* The instant by which to call watch_tick and watch_send; 0: at once. */
double watch_due(const watch_t *watch);
/* Send the notes that are wanted and can be sent. */
void watch_send(watch_t *watch);
/* Are notes wanted? */
bool watch_has_notes(const watch_t *watch);

/* ---- the end ------------------------------------------------------------- */

/* The group has failed: tell the neighbours. Once. */
void watch_tell(watch_t *watch, const err_t *fault);
/* Have all been told that can be? */
bool watch_has_told(const watch_t *watch);
/* This rank leaves: say good-bye. Further calls do nothing. */
void watch_leave(watch_t *watch);
/* Have all that were told answered? */
bool watch_has_left(const watch_t *watch);
/* Is any note being sent? */
bool watch_is_sending(const watch_t *watch);
/* The instant of the last beat of [rank]. */
double watch_last_beat(const watch_t *watch, int rank);

/* ---- calls --------------------------------------------------------------- */

/* How [request], collective [number] of this rank, is told to others. [arena]:
 * its data lies in an arena and goes through memory of the node. */
watch_call_t watch_call_of(const comm_request_t *request, uint64_t number,
                           bool arena);

#endif
