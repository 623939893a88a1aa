/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the ranks of a threads group share (internal to comm_threads*.c).
 *
 * Collective number n of the group uses slot n % COMM_WORKS_MAX. A rank that
 * starts it stores its request in the slot. When all ranks have done so, the
 * slot is open, and threads that wait or poll claim its pieces one by one: so
 * no rank depends on another rank being in wait. A piece is a range of elements
 * (or bytes, or a rank's part) that one thread computes, in rank order, and
 * stores to the buffers of all ranks: the same bits, whichever thread claims
 * it.
 *
 * Collective n + COMM_WORKS_MAX uses the slot again. A rank can start it only
 * after its own wait for n has returned, so n is complete by then.
 *
 * There is one lock, team->lock. Requests in a slot are written under the lock
 * before the slot opens, and read after a claim (acquire).
 */
#ifndef CDDP_COMM_THREADS_TEAM_H
#define CDDP_COMM_THREADS_TEAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm_ops.h"

typedef struct threads_slot {
    /* Protected by team->lock: */
    /* Number of the collective that is being started in this slot. */
    uint64_t number;
    int arrived;
    comm_request_t *requests; /* [size] */
    void **views;             /* [size * COMM_VIEWS_MAX] */
    uint32_t pieces;
    /* (number + 1) << 24 | pieces left to claim. The number keeps a late thread
     * from claiming a piece of the slot's next collective. */
    atomic_uint_fast64_t claim;
    atomic_uint_fast32_t done; /* number of pieces that are done */
    /* Number + 1 of the last collective that was completed. */
    atomic_uint_fast64_t completed;
} threads_slot_t;

typedef struct threads_member {
    atomic_uint_fast64_t started; /* number of collectives started */
    _Atomic double progress;      /* instant of the last sign of progress */
    atomic_bool waiting;          /* the rank is inside wait */
    atomic_bool left;             /* the rank has closed the group */
    _Atomic(const char *) phase;  /* phase that the rank reported, or NULL */
    atomic_int_fast64_t step;
} threads_member_t;

typedef struct threads_team {
    uint64_t nonce;
    int size;
    double timeout;
    pthread_mutex_t lock;
    /* Signalled when something is completed, failed or left. */
    pthread_cond_t changed;
    threads_slot_t slots[COMM_WORKS_MAX];
    threads_member_t *members; /* [size] */
    int users;                 /* number of open handles, under lock */
    atomic_bool failed;
    err_t fault;        /* under lock; set once, before [failed] */
    atomic_int working; /* number of threads inside a piece */
    bool spin;          /* there are more cores than ranks */
} threads_team_t;

/* Make (rank 0) or find (other ranks) the team of [oob]. Collective. The last
 * rank that leaves frees the team. */
err_code_t threads_team_join(const comm_oob_t *oob, double timeout,
                             threads_team_t **out, err_t *err);
void threads_team_free(threads_team_t *team);

/* Claim and compute one piece of the open collective [number]. False if no
 * piece is left to claim, or the team has failed. */
bool threads_piece_do(threads_team_t *team, uint64_t number);

/* Mark the collective [number] in [slot] complete and wake its waiters. */
void threads_slot_complete(threads_team_t *team, threads_slot_t *slot,
                           uint64_t number);

/* Number of pieces into which [request] of rank 0 is divided. */
uint32_t threads_piece_count(const comm_request_t *request, int size);

/* Number of bits of threads_slot_t.claim that count pieces. */
#define THREADS_CLAIM_BITS 24

#endif
