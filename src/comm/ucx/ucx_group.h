/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The inside of the ucx backend (comm_ucx.c and ucx_*.c).
 *
 * Two threads: the owner, who starts, polls, waits and closes, and the comm
 * thread. One of them drives at a time (ucx_drive.c) and alone touches the UCP
 * worker. They meet in the table of works: the owner fills the slot of the next
 * number, queues it and raises `submitted`; the driver carries out up to
 * UCX_ACTIVE works at a time, in order of number, and stores each one's state.
 * Works of the node stage (ucx_node.h) within one node are not queued: owners
 * carry them out. Fields below are marked [o] (owner), [c] (driver) or
 * [a]tomic.
 *
 * A work is cut into lanes (ucx_lane.h), which are carried out side by side:
 * one computes while the other is on the wire. The driver runs the watch
 * (watch.h), which finds faults.
 */
#ifndef CDDP_COMM_UCX_GROUP_H
#define CDDP_COMM_UCX_GROUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <ucp/api/ucp.h>

#include "comm/comm_ops.h"
#include "comm/node/node.h"
#include "comm/ucx/ucx_lane.h"
#include "comm/ucx/ucx_node.h"
#include "comm/ucx/ucx_peer.h"

#define UCX_ACTIVE 4 /* number of works carried out at a time */

typedef struct ucx_work {
    comm_work_t base;
    uint64_t number;
    bool busy;              /* [o] returned by start, not yet waited for */
    bool queued;            /* [o] the driver has a part in it */
    atomic_int state;       /* comm_state_t */
    comm_request_t request; /* [o] before submitted, then [c] */
    void *views[COMM_VIEWS_MAX];
    double started;   /* clock instant of the start */
    comm_plan_t plan; /* how it is carried out; [o] before submitted */
    node_work_t node; /* active if the node stage has a part in it */
} ucx_work_t;

typedef struct ucx_active {
    ucx_work_t *work; /* of all ranks, padded to equal length */
    ucx_lane_t lanes[COMM_LANES];
} ucx_active_t;

struct ucx_group {
    comm_group_t base;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
    char *addresses; /* of all ranks, padded */
    ucx_peer_t *peers;
    node_place_t place;
    comm_place_t planned; /* the place in the form that comm_plan needs */
    ucx_last_plan_t last; /* [o] */
    node_t *node;         /* node stage of this rank; open or not */
    bool core; /* each rank that shares our cores has a core of its own */
    bool spin; /* there is also one core more */

    /* For owner and comm thread. */
    pthread_mutex_t drive; /* the thread that has locked it drives */
    atomic_ulong driver;   /* with checks on: that thread; 0: none */
    atomic_bool wanted;    /* the owner wants to drive */
    _Atomic double driven; /* instant at which the owner last stopped driving */
    ucx_work_t works[COMM_WORKS_MAX];
    uint64_t started; /* [o] number of the next work */
    /* Works with lower numbers are in the table. */
    atomic_uint_fast64_t submitted;
    ucx_work_t *queue[COMM_WORKS_MAX]; /* works for the comm thread */
    atomic_uint_fast64_t queued;       /* total number of works ever queued */
    atomic_uint_fast64_t progress; /* counts signs of progress of the owner */
    atomic_int_fast64_t step;
    _Atomic(const char *) phase;
    atomic_int waiting;    /* number of waits in progress */
    _Atomic double polled; /* instant of the last poll without result */
    _Atomic double ticked; /* instant of the comm thread's latest turn */
    atomic_bool asleep;    /* the comm thread blocks: write to wakefd */
    atomic_bool leaving;   /* the owner has called close */
    atomic_bool failed;
    atomic_bool hung;     /* the comm thread does not tick any more */
    pthread_mutex_t lock; /* for fault, changes of works' state, slept */
    pthread_cond_t changed;
    err_t fault;
    watch_call_t slept; /* the call because of which the owner last slept */

    /* For the driver. */
    pthread_t thread;
    bool running; /* [o] the thread was started */
    int wakefd, epollfd;
    uint64_t taken; /* total number of works taken from the queue */
    ucx_active_t active[UCX_ACTIVE];
    int active_count;
    uint64_t moves; /* number of completed requests */
    /* [ranks of the node]: scratch, addresses of a segment. */
    char **span_parts;
    watch_t *watch;
    double failed_at; /* instant at which the comm thread saw the fault */
    ucx_inbox_t inboxes[UCX_INBOXES];
    double patience; /* seconds to spin before sleeping */
    unsigned sleeps; /* number of sleeps after spinning in vain */
    bool quiet; /* after a fault: no memory of the owner is touched any more */
    /* A request could not be ended, so the worker is never driven again. */
    bool frozen;
    bool clean; /* nothing is outstanding: the worker may be destroyed */
    bool ended; /* under lock: the comm thread has returned */
};

/* ---- ucx_worker.c, ucx_net.c: worker; endpoints, messages ---------------- */

/* Return whether the environment chooses UCX's network on this rank. */
bool ucx_net_is_own(void);
err_code_t ucx_net_open(ucx_group_t *group, const comm_oob_t *oob,
                        const comm_hello_t *hellos, err_t *err);
void ucx_net_close(ucx_group_t *group);

/* The endpoint to [rank], opened at first use. NULL: the group has failed. */
ucp_ep_h ucx_net_endpoint(ucx_group_t *group, int rank);

/* Return whether UCX holds data that it has not yet given to the network.
 * Driver. */
bool ucx_net_holds(ucx_group_t *group);

/* ---- ucx_group.c: the state of the group --------------------------------- */

/* Fail the group. The first fault counts. Any thread. */
void ucx_group_fail(ucx_group_t *group, const err_t *fault);
/* Report that the process of [rank] ended, or the connection to it broke.
 * Driver. */
void ucx_group_lost(ucx_group_t *group, int rank);
/* For checks: return whether the calling thread drives. */
bool ucx_group_drives(const ucx_group_t *group);
/* Wake the comm thread if it sleeps. Any thread. */
void ucx_group_wake(ucx_group_t *group);
/* To be called before the owner sleeps because of [work], of the node stage. */
void ucx_group_sleeps(ucx_group_t *group, const ucx_work_t *work);
/* The call of [work], in the form that the watch tells other ranks. */
watch_call_t ucx_group_call(const ucx_work_t *work);
/* Begin to watch the ranks; [send] sends the notes. */
err_code_t ucx_group_watch(ucx_group_t *group,
                           bool (*send)(void *, int, const watch_note_t *),
                           err_t *err);

/* ---- ucx_algorithm.c ----------------------------------------------------- */

/* The algorithm of the driver's part of [work]. */
ucx_algorithm_t ucx_algorithm(const ucx_work_t *work);

/* ---- ucx_drive.c --------------------------------------------------------- */

/* epoll data: a rank (for its pidfd), or one of these. */
enum { UCX_EVENT_WAKE = -1, UCX_EVENT_WORKER = -2, UCX_EVENT_BELL = -3 };

/* About the time that it takes to go to sleep and to wake. */
#define UCX_SPIN_SECONDS 50e-6

/* Number of turns in a row that moved nothing, the instant of the first of
 * them, and whether the driver slept since. */
typedef struct ucx_idle {
    int turns;
    double since;
    bool slept;
} ucx_idle_t;

/* Make one turn of the driver. Returns whether anything moved. */
bool ucx_drive_turn(ucx_group_t *group, double now);
/* After a turn that moved nothing: return whether to make another turn at
 * once. */
bool ucx_drive_patient(ucx_group_t *group, ucx_idle_t *idle, double now,
                       bool spin);
/* To be called after a turn that moved something. */
void ucx_drive_moved(ucx_group_t *group, ucx_idle_t *idle);
/* The instant until which the driver may sleep. */
double ucx_drive_until(const ucx_group_t *group, double now);

/* For the comm thread. take: begin to drive, when it is needed. give: stop
 * driving. sleep: until [instant] or an event; meanwhile the owner may
 * drive. */
void ucx_drive_take(ucx_group_t *group);
void ucx_drive_give(ucx_group_t *group);
void ucx_drive_sleep(ucx_group_t *group, double instant, bool leaving);

/* For the owner: drive until [work] is over. False: the comm thread has to do
 * it. */
bool ucx_drive_wait(ucx_group_t *group, const ucx_work_t *work);

/* ---- ucx_thread.c -------------------------------------------------------- */

err_code_t ucx_thread_start(ucx_group_t *group, err_t *err);
/* Ask the comm thread to wake also when [fd], of the node stage, becomes
 * readable. Owner. */
err_code_t ucx_thread_watch_bell(ucx_group_t *group, int fd, err_t *err);

#endif
