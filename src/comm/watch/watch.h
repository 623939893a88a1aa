/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * watch: finds out that a rank of a group died, hangs, left early or called a
 * different collective, and tells all ranks about it.
 *
 * Ranks send each other notes (watch_note.h). Each rank sends beats to its
 * neighbours: to all other ranks in a small group, to those at distances 1, 2,
 * 4 ... in a large one. A rank that learns of a fault tells its neighbours
 * once. So all ranks know it within log2(size) hops, whichever ranks have died.
 * Beats also contain how many collectives of another group have begun and ended
 * on the sender's device. This shows for which device the others wait.
 *
 * A watch knows no transport and no clock. The caller passes to it the notes
 * that arrive, the events of the transport and the time (in seconds, of
 * clock_now). The watch sends its notes with config.send. Nothing is allocated
 * after watch_open: at most one note to each rank is in flight, and notes that
 * have to follow are stored as one bit for each kind. So a rank that receives
 * nothing costs one small message.
 *
 * Thread rule: one thread at a time; here the thread that drives the group.
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
    int64_t step;      /* training step that was last reported */
    const char *phase; /* phase that was last reported; NULL: none yet */
    bool waiting;      /* the owner waits for others, or polled a moment ago */
    /* Collectives in progress, of both threads of this rank. */
    uint64_t oldest, newest; /* WATCH_NONE: there are none */
    double since;            /* start of collective [oldest] */
    bool driven;             /* a thread of this rank works on a collective */
    /* The oldest call in progress that could be told to others. */
    watch_call_t call;   /* its number is 0 if there is none */
    double called;       /* start of this call */
    comm_marks_t device; /* collectives of a group beside this one */
} watch_view_t;

typedef struct watch_config {
    int rank, size;             /* this rank; ranks of the group */
    double timeout;             /* seconds: fault.timeout */
    const comm_hello_t *hellos; /* [size]: names and hosts; outlive the watch */
    void *context;              /* first argument of the functions below */
    void (*view)(void *context, watch_view_t *out);
    /* Start to send [note] to [rank]. True: it is still being sent, and the
     * caller reports the end with watch_sent. May call watch_lost. */
    bool (*send)(void *context, int rank, const watch_note_t *note);
    /* Report that the group has failed. The first of several faults counts. */
    void (*fail)(void *context, const err_t *fault);
    /* Report that this process did not run for a while: all collectives in
     * progress count as started at [now]. */
    void (*resumed)(void *context, double now);
} watch_config_t;

err_code_t watch_open(const watch_config_t *config, double now, watch_t **out,
                      err_t *err);
/* NULL is allowed. */
void watch_close(watch_t *watch);

/* Seconds between two beats, short enough that one or two may be lost. */
double watch_interval(double timeout);

/* ---- events -------------------------------------------------------------- */

/* Handle [note], which has arrived. It may contain any bytes. */
void watch_hear(watch_t *watch, const watch_note_t *note, double now);
/* Report that the note to [rank] has been sent, or never will be. */
void watch_sent(watch_t *watch, int rank);
/* Report a connection to [rank], made by this rank or by that one: each of them
 * tells the other when it leaves, and waits for the answer. */
void watch_connected(watch_t *watch, int rank);
/* Report that the process of [rank] ended, or the connection to it broke. */
void watch_lost(watch_t *watch, int rank, double now);
/* Return whether [rank] exchanges beats with this rank. */
bool watch_is_neighbour(const watch_t *watch, int rank);

/* ---- deadlines ----------------------------------------------------------- */

/* Report that this rank begins to carry out [call], which it started at the
 * instant [started]. Returns the call's digest, of WATCH_DIGEST_BITS bits. */
uint32_t watch_begin(watch_t *watch, const watch_call_t *call, double started);
/* Fail if a rank left before it finished a collective that is in progress
 * here. */
void watch_check_left(watch_t *watch);
/* Check deadlines and request beats, if it is time. */
void watch_tick(watch_t *watch, double now);
/* The instant by which watch_tick and watch_send must be called; 0: at once. */
double watch_due(const watch_t *watch);
/* Send those requested notes that can be sent now. */
void watch_send(watch_t *watch);
/* Return whether notes are requested. */
bool watch_has_notes(const watch_t *watch);

/* ---- the end ------------------------------------------------------------- */

/* Tell the neighbours that the group has failed. To be called once. */
void watch_tell(watch_t *watch, const err_t *fault);
/* Return whether all ranks that can be told have been told. */
bool watch_has_told(const watch_t *watch);
/* Say good-bye, as this rank leaves. Further calls do nothing. */
void watch_leave(watch_t *watch);
/* Return whether all ranks to which this rank said good-bye have answered. */
bool watch_has_left(const watch_t *watch);
/* Return whether a note is being sent. */
bool watch_is_sending(const watch_t *watch);
/* The instant of the last beat of [rank]. */
double watch_last_beat(const watch_t *watch, int rank);

/* ---- calls --------------------------------------------------------------- */

/* The call of [request], collective number [number] of this rank, in the form
 * for other ranks. [arena]: its data is in an arena and goes through memory of
 * the node. */
watch_call_t watch_call_of(const comm_request_t *request, uint64_t number,
                           bool arena);

#endif
