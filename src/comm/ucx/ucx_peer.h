/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Peers of a ucx group: the other ranks, as UCX reaches them (ucx_net.c), and
 * which of them are on this node (ucx_local.c).
 */
#ifndef CDDP_COMM_UCX_PEER_H
#define CDDP_COMM_UCX_PEER_H

#include <ucp/api/ucp.h>

#include "comm/comm_ops.h"
#include "comm/ucx/ucx_fabric.h"
#include "comm/watch/watch.h"

typedef struct ucx_group ucx_group_t;

typedef struct ucx_peer {
    ucx_group_t *group;
    ucp_ep_h endpoint; /* NULL until first used */
    const void *address;
    int pidfd;  /* -1: not on this node */
    bool local; /* both sides have verified that it is on this node */
} ucx_peer_t;

#define UCX_INBOXES 8 /* receives of notes that are posted */

typedef struct ucx_inbox {
    ucx_group_t *group;
    void *request; /* NULL: not posted */
    watch_note_t note;
} ucx_inbox_t;

/* ---- ucx_local.c: who is on this node ------------------------------------ */

typedef struct ucx_card { /* what ranks exchange about themselves */
    int64_t pid;
    int64_t fd; /* memfd that holds the nonce; -1: none */
    uint64_t nonce;
    uint64_t cpus; /* hash of the cores that it may use */
    ucx_fabric_t fabric;
} ucx_card_t;

/* Fill [card]; *fd stays open until ucx_local_find has returned everywhere. */
err_code_t ucx_local_card(ucx_card_t *card, int *fd, err_t *err);
/* Set mate and pidfd of the peers, and spin; collective. */
err_code_t ucx_local_find(ucx_group_t *group, const comm_oob_t *oob,
                          const comm_hello_t *hellos, const ucx_card_t *cards,
                          err_t *err);
/* After a fault: end the culprit if it is on this node and stalls, or the step
 * would wait for it for ever. Owner, after the comm thread has ended. */
void ucx_local_end(ucx_group_t *group);

/* ---- ucx_notes.c: the notes of the watch, over UCX ----------------------- */

/* Post the receives; cancel them. */
void ucx_notes_open(ucx_group_t *group);
void ucx_notes_close(ucx_group_t *group);
/* What watch_config.send is: [context] is the group. */
bool ucx_notes_send(void *context, int rank, const watch_note_t *note);

#endif
