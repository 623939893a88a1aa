/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How a rank of a ucx group reaches the other ranks: its UCP worker, a peer for
 * each rank, and the requests of its messages. Lanes (ucx_lane.h) and notes
 * (ucx_notes.h) are sent and received through it.
 *
 * Thread rule: the owner opens and closes a net while no comm thread runs. In
 * between, the driver (ucx_drive.h) calls all other functions.
 */
#ifndef CDDP_COMM_UCX_NET_H
#define CDDP_COMM_UCX_NET_H

#include <stdatomic.h>
#include <ucp/api/ucp.h>

#include "comm/comm_ops.h"
#include "comm/ucx/ucx_gate.h"
#include "comm/ucx/ucx_route.h"
#include "comm/watch/watch.h"

typedef struct ucx_local ucx_local_t; /* ucx_local.h */
typedef struct ucx_net ucx_net_t;

typedef struct ucx_peer {
    ucx_net_t *net;
    ucp_ep_h endpoint; /* NULL until it is first used */
    const void *address;
    int pidfd;  /* -1: the rank is not on this node, or there are no pidfds */
    bool local; /* both ranks have verified that they are on one node */
} ucx_peer_t;

#define UCX_INBOXES 8 /* number of posted receives of notes */

typedef struct ucx_inbox { /* a receive of a note */
    ucx_net_t *net;
    void *request; /* NULL: not posted */
    watch_note_t note;
} ucx_inbox_t;

struct ucx_net {
    /* Set before ucx_net_open: */
    const comm_group_t *base; /* rank, size, names and hosts of the ranks */
    void *context;            /* first argument of [fail] */
    void (*fail)(void *context, const err_t *fault); /* Fail the group. */
    /* Set before the first message is sent: */
    watch_t *watch;
    /* Set by ucx_net_open: */
    ucp_context_h worker_context;
    ucp_worker_h worker;
    ucp_address_t *address; /* of the worker */
    size_t address_bytes;
    ucx_gate_sinks_t sinks; /* of the worker's gate */
    char *addresses;        /* addresses of all ranks, padded to equal length */
    ucx_peer_t *peers;      /* [size] */

    ucx_inbox_t inboxes[UCX_INBOXES];
    uint64_t moves; /* number of messages that have completed */
    /* How the first peer on another host is reached, once [routed] is true. */
    char route[UCX_ROUTE];
    atomic_bool routed;
    atomic_ulong driver; /* with checks on: the thread that drives; 0: none */
};

/* Return whether this rank's environment chooses the networks of UCX. */
bool ucx_net_is_own(void);

/* Find out which ranks are on this node (stored in [local]), and make the
 * worker. Collective; blocks as oob->exchange does. After an error, too,
 * ucx_local_close and ucx_net_close must be called. */
err_code_t ucx_net_open(ucx_net_t *net, const comm_oob_t *oob,
                        ucx_local_t *local, err_t *err);
/* Exchange the addresses of the workers: then each rank may send. Collective;
 * blocks as oob->exchange does. */
err_code_t ucx_net_meet(ucx_net_t *net, const comm_oob_t *oob, err_t *err);
/* Destroy the worker. No message may be outstanding. */
void ucx_net_close(ucx_net_t *net);

/* The endpoint to [rank], which is made at its first use. NULL: that failed,
 * and so has the group. */
ucp_ep_h ucx_net_endpoint(ucx_net_t *net, int rank);
/* How this rank sends to another host. NULL: this rank has not sent to another
 * host yet, or UCX does not tell. Any thread. */
const char *ucx_net_route(const ucx_net_t *net);
/* Report that the process of [rank] ended, or that the connection to it
 * broke. */
void ucx_net_lost(ucx_net_t *net, int rank);
/* Return whether UCX has data that it has not yet given to the network, or
 * knows of a broken connection. */
bool ucx_net_holds(ucx_net_t *net);
/* For checks: return whether the calling thread drives. Any thread. */
bool ucx_net_is_driven(const ucx_net_t *net);

/* ---- requests ------------------------------------------------------------ */

/*
 * Memory that UCX reserves for us in each of its requests. UCX may call the
 * completion of a receive before the post has returned: then the callback sets
 * [early], and the post continues as if the message had been done at once.
 */
typedef struct ucx_request {
    /* List of the lane's outstanding requests. */
    struct ucx_request *next, *previous;
    int peer;     /* rank at the other end */
    size_t bytes; /* bytes of the message */
    /* Of a message that completed early: its result, and the bytes that came.
     */
    ucs_status_t status;
    size_t got;
    bool posted; /* the post has returned */
    bool early;  /* the message completed before the post returned */
} ucx_request_t;

/* To be called first in a completion callback: return whether it is early. Then
 * the callback does nothing else. */
bool ucx_request_early(ucx_request_t *request);
/* To be called after a post: return whether the request is still outstanding.
 */
bool ucx_request_posted(ucx_request_t *request);
/* Give the request of a message that is done back to UCX. */
void ucx_request_free(ucx_request_t *request);

/* The first bits of a tag: what the message is. */
enum { UCX_TAG_DATA = 1, UCX_TAG_NOTE = 2 };
#define UCX_TAG_KIND(kind) ((ucp_tag_t)(kind) << 60)
#define UCX_TAG_KIND_MASK UCX_TAG_KIND(15)

#endif
