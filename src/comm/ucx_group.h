/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The inside of the ucx backend (comm_ucx.c and ucx_*.c).
 *
 * Two threads: the owner, who starts, polls, waits and closes, and the comm
 * thread, which alone touches the UCP worker. They meet in the table of works:
 * the owner fills the slot of the next number and raises `submitted`; the comm
 * thread carries out up to UCX_ACTIVE works at a time, in order of number, and
 * stores each one's state. Fields below are marked [o], [c] or [a]tomic.
 *
 * A work is cut into lanes, which go their way side by side (one computes while
 * the other is on the wire). A lane is a state machine: whenever none of its
 * requests is outstanding, its algorithm computes on what has come and posts
 * the next round.
 *
 * Tags: kind, source rank, collective number, lane. UCP keeps the order of
 * messages with equal tags between two ranks, and a lane posts its sends to a
 * rank and its receives from a rank in the same order on both sides.
 */
#ifndef CDDP_COMM_UCX_GROUP_H
#define CDDP_COMM_UCX_GROUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <ucp/api/ucp.h>

#include "comm/comm_liveness.h"
#include "comm/comm_ops.h"

#define UCX_ACTIVE 4 /* works carried out at a time */
#define UCX_LANES 2

/* Thresholds, to be tuned by measurement. A chunk is what one message of a
 * segmented algorithm carries. */
#define UCX_CHUNK_BYTES ((size_t)256 << 10)
#define UCX_DOUBLING_BYTES ((size_t)32 << 10) /* all-reduce: doubling up to */
#define UCX_BRUCK_BYTES ((size_t)4 << 10)     /* all-gather: Bruck up to */

typedef struct ucx_group ucx_group_t;
typedef struct ucx_lane ucx_lane_t;

/* Post the next round of [lane] (whose requests have all completed); false:
 * the lane is done. */
typedef bool (*ucx_algorithm_t)(ucx_group_t *group, ucx_lane_t *lane);

/* The memory that UCX keeps for us inside each of its requests. */
typedef struct ucx_request {
    struct ucx_request *next, *previous; /* outstanding requests of a lane */
    size_t bytes;                        /* to be received */
} ucx_request_t;

struct ucx_lane {
    ucx_group_t *group;
    struct ucx_work *work;
    const comm_request_t *request; /* what is to be done */
    ucx_algorithm_t algorithm;
    uint64_t number;
    int index;  /* of this lane in its work */
    int lanes;  /* how many the work has */
    bool alive; /* not yet done */
    unsigned pending;
    ucx_request_t *posted; /* list of the pending ones */
    /* State of the algorithm: */
    int state;
    int mask;
    size_t at; /* begin of the current segment, elements or bytes */
    size_t slice;
    void *scratch;
    int64_t *ranges; /* tree: first, held of each rank */
    int64_t range[2];
    comm_request_t inner; /* tree: the all-gather of ranges */
};

typedef struct ucx_work {
    comm_work_t base;
    uint64_t number;
    bool busy;              /* [o] given out, not yet waited for */
    atomic_int state;       /* comm_state_t */
    comm_request_t request; /* [o] before submitted, then [c] */
    void *views[COMM_VIEWS_MAX];
    double started; /* instant */
} ucx_work_t;

typedef struct ucx_active {
    ucx_work_t *work; /* NULL: free */
    ucx_lane_t lanes[UCX_LANES];
} ucx_active_t;

/* A message from comm thread to comm thread. */
typedef enum ucx_note_kind {
    NOTE_BEAT,
    NOTE_FAULT, /* culprit and text: there is a fault */
    NOTE_BYE,   /* I leave */
    NOTE_ACK    /* I know that you left; nothing more comes from me */
} ucx_note_kind_t;

#define UCX_NOTE_TEXT 320

typedef struct ucx_note {
    int32_t kind;
    int32_t from;
    int32_t culprit;
    int32_t code; /* err_code_t of a fault */
    liveness_beat_t beat;
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
    bool parted;     /* it left, or acknowledged that we leave */
    unsigned wanted; /* bits 1 << kind: notes to be sent */
    ucx_note_t note;
} ucx_peer_t;

#define UCX_INBOXES 8

typedef struct ucx_inbox {
    ucx_group_t *group;
    void *request; /* NULL: not posted */
    ucx_note_t note;
} ucx_inbox_t;

struct ucx_group {
    comm_group_t base;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
    char *addresses; /* of all ranks, padded */
    ucx_peer_t *peers;
    bool spin; /* more cores than ranks that share them */

    /* Owner and comm thread. */
    ucx_work_t works[COMM_WORKS_MAX];
    uint64_t started;               /* [o] next number */
    atomic_uint_fast64_t submitted; /* works below it are in the table */
    atomic_uint_fast64_t progress;  /* signs of progress of the owner */
    atomic_int_fast64_t step;
    _Atomic(const char *) phase;
    atomic_int waiting;    /* waits under way */
    _Atomic double polled; /* instant of the last fruitless poll */
    _Atomic double ticked; /* instant of the comm thread's last loop */
    atomic_bool asleep;    /* comm thread blocks: write to wakefd */
    atomic_bool leaving;   /* owner called close */
    atomic_bool failed;
    atomic_bool hung;     /* the comm thread does not tick */
    pthread_mutex_t lock; /* fault; a work's change of state */
    pthread_cond_t changed;
    err_t fault;

    /* Comm thread. */
    pthread_t thread;
    bool running; /* [o] thread was started */
    int wakefd, epollfd;
    uint64_t next; /* next work to carry out */
    ucx_active_t active[UCX_ACTIVE];
    int active_count;
    uint64_t moves;  /* requests completed */
    uint64_t moved;  /* moves when last looked at */
    double moved_at; /* instant at which moves had changed */
    liveness_t liveness;
    double beat_at; /* instant of the next beat */
    double tick_at; /* instant by which to look at deadlines */
    bool notes_due;
    int left_rank; /* that left having finished the fewest; -1: nobody left */
    uint64_t left_finished;
    bool farewell;    /* good-byes were wanted */
    double failed_at; /* instant at which the comm thread saw the fault */
    ucx_inbox_t inboxes[UCX_INBOXES];
    bool quiet;  /* after a fault: nothing of the owner's is touched any more */
    bool frozen; /* a request could not be ended: the worker rests for ever */
    bool clean;  /* nothing is outstanding: the worker may be destroyed */
    bool ended;  /* under lock: the comm thread has returned */
};

/* ---- ucx_net.c: worker, endpoints, messages --------------------------------
 */

err_code_t ucx_net_open(ucx_group_t *group, const comm_oob_t *oob,
                        const comm_hello_t *hellos, err_t *err);
void ucx_net_close(ucx_group_t *group);

/* Endpoint to [rank], made when first asked for; NULL: the group has failed. */
ucp_ep_h ucx_net_endpoint(ucx_group_t *group, int rank);

/* The process of [rank] ended or the connection to it broke. */
void ucx_peer_lost(ucx_group_t *group, int rank);

/* Post a message of [lane] to or from [rank]. Zero bytes are a message, too. */
void ucx_lane_send(ucx_lane_t *lane, int rank, const void *data, size_t bytes);
void ucx_lane_recv(ucx_lane_t *lane, int rank, void *data, size_t bytes);
void ucx_lane_cancel(ucx_lane_t *lane);

enum { UCX_TAG_DATA = 1, UCX_TAG_NOTE = 2 };
#define UCX_TAG_KIND(kind) ((ucp_tag_t)(kind) << 60)
#define UCX_TAG_KIND_MASK UCX_TAG_KIND(15)

/* ---- ucx_mates.c: who is on this node ---------------------------------------
 */

typedef struct ucx_card { /* what ranks exchange about themselves */
    int64_t pid;
    int64_t fd; /* memfd that holds the nonce; -1: none */
    uint64_t nonce;
    uint64_t cpus; /* hash of the affinity mask */
    uint64_t address_bytes;
} ucx_card_t;

/* Fill [card]; *fd stays open until ucx_mates_find has returned everywhere. */
err_code_t ucx_mates_card(ucx_card_t *card, int *fd, err_t *err);
/* Set mate and pidfd of the peers, and spin; collective. */
err_code_t ucx_mates_find(ucx_group_t *group, const comm_oob_t *oob,
                          const comm_hello_t *hellos, const ucx_card_t *cards,
                          err_t *err);

/* ---- ucx_notes.c: beats, faults, leaving
 * ------------------------------------- */

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
uint64_t ucx_group_finished(const ucx_group_t *group);

/* The group has failed; the first fault counts. Any thread. */
void ucx_group_fail(ucx_group_t *group, const err_t *fault);
/* The same, composing the sentence about [culprit]. Comm thread. */
void ucx_group_blame(ucx_group_t *group, int culprit, const char *reason);

/* ---- ucx_thread.c
 * -------------------------------------------------------------- */

err_code_t ucx_thread_start(ucx_group_t *group, err_t *err);
void ucx_thread_wake(ucx_group_t *group);

/* ---- algorithms: ucx_small.c, ucx_ring.c, ucx_tree.c
 * ---------------------------- */

bool ucx_doubling(ucx_group_t *group, ucx_lane_t *lane);  /* all-reduce */
bool ucx_barrier(ucx_group_t *group, ucx_lane_t *lane);   /* dissemination */
bool ucx_broadcast(ucx_group_t *group, ucx_lane_t *lane); /* binomial */
bool ucx_bruck(ucx_group_t *group, ucx_lane_t *lane);     /* all-gather */
bool ucx_ring_reduce(ucx_group_t *group, ucx_lane_t *lane);
bool ucx_ring_gather(ucx_group_t *group, ucx_lane_t *lane);
bool ucx_tree(ucx_group_t *group, ucx_lane_t *lane);

/* Bytes of scratch of each lane. */
size_t ucx_scratch_bytes(int size);

#endif
