/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Peers of a ucx group: who is on this node (ucx_mates.c), and the notes that
 * comm threads exchange about being alive, faults and leaving (ucx_notes.c).
 * All of it belongs to the comm thread once the group is open.
 */
#ifndef CDDP_COMM_UCX_PEER_H
#define CDDP_COMM_UCX_PEER_H

#include <ucp/api/ucp.h>

#include "comm/comm_liveness.h"
#include "comm/comm_ops.h"
#include "comm/ucx_calls.h"
#include "comm/ucx_fabric.h"

typedef struct ucx_group ucx_group_t;

/* A message from comm thread to comm thread. */
typedef enum ucx_note_kind {
    NOTE_BEAT,
    NOTE_FAULT, /* culprit and text: there is a fault */
    NOTE_BYE,   /* I leave */
    NOTE_ACK,   /* I know that you left; nothing more comes from me */
    NOTE_CALL   /* call: what I called, as it takes long */
} ucx_note_kind_t;

#define UCX_NOTE_TEXT 320

typedef struct ucx_note {
    int32_t kind;
    int32_t from;
    int32_t culprit;
    int32_t code; /* err_code_t of a fault */
    liveness_beat_t beat;
    ucx_call_t call;
    char text[UCX_NOTE_TEXT];
} ucx_note_t;

typedef struct ucx_peer {
    ucx_group_t *group;
    ucp_ep_h endpoint; /* NULL until first used */
    const void *address;
    int pidfd;       /* -1: not on this node */
    bool mate;       /* verified to be on this node, by both sides */
    bool neighbour;  /* we beat for it and it for us */
    bool sending;    /* note is on its way */
    unsigned wanted; /* bits 1 << kind: notes to be sent */
    ucx_call_t call; /* the last one that it told */
    ucx_note_t note;
} ucx_peer_t;

#define UCX_INBOXES 8

typedef struct ucx_inbox {
    ucx_group_t *group;
    void *request; /* NULL: not posted */
    ucx_note_t note;
} ucx_inbox_t;

/* ---- ucx_mates.c: who is on this node ------------------------------------ */

typedef struct ucx_card { /* what ranks exchange about themselves */
    int64_t pid;
    int64_t fd; /* memfd that holds the nonce; -1: none */
    uint64_t nonce;
    uint64_t cpus; /* hash of the cores that it may use */
    ucx_fabric_t fabric;
} ucx_card_t;

/* Fill [card]; *fd stays open until ucx_mates_find has returned everywhere. */
err_code_t ucx_mates_card(ucx_card_t *card, int *fd, err_t *err);
/* Set mate and pidfd of the peers, and spin; collective. */
err_code_t ucx_mates_find(ucx_group_t *group, const comm_oob_t *oob,
                          const comm_hello_t *hellos, const ucx_card_t *cards,
                          err_t *err);
/* After a fault: end the culprit if it is on this node and stalls, or the step
 * would wait for it for ever. Owner, after the comm thread has ended. */
void ucx_mates_end(ucx_group_t *group);

/* ---- ucx_notes.c: beats, faults, leaving --------------------------------- */

void ucx_notes_open(ucx_group_t *group);
void ucx_notes_close(ucx_group_t *group);
/* Want a note of [kind] sent to every neighbour and whoever has an endpoint. */
void ucx_notes_want(ucx_group_t *group, ucx_note_kind_t kind);
/* Send what is wanted and possible. */
void ucx_notes_send(ucx_group_t *group);
/* Beats, deadlines; returns the instant by which to call it again. */
double ucx_notes_tick(ucx_group_t *group, double now);
/* Is any note on its way? */
bool ucx_notes_sending(const ucx_group_t *group);
/* Has every note that can be sent been sent? */
bool ucx_notes_idle(const ucx_group_t *group);
/* Have all that are told answered our good-bye? */
bool ucx_notes_parted(const ucx_group_t *group);
/* Blame who left before it finished what is being carried out here. */
void ucx_left_check(ucx_group_t *group);
/* Number of the first collective not finished here. */
uint64_t ucx_group_finished(ucx_group_t *group);

#endif
