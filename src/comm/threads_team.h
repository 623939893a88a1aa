/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the ranks of a threads group share (internal to comm_threads*.c).
 *
 * Collective number n of the group lives in slot n % COMM_WORKS_MAX. A rank
 * that starts it leaves its request there; once all have come, the slot is
 * open and its pieces are claimed one by one by whoever waits or polls, so no
 * rank depends on another one being in wait. A piece is a range of elements
 * (or bytes, or a rank's part) that one thread computes, summing in rank order,
 * and stores to every rank's copy: the same bits, whoever claims it.
 *
 * A slot is used again by collective n + COMM_WORKS_MAX, which a rank can start
 * only after its own wait for n has returned, so n is complete by then.
 *
 * Lock order: team->lock only. Requests in a slot are written under the lock
 * before the slot opens and read by claimers after a claim (acquire).
 */
#ifndef CDDP_COMM_THREADS_TEAM_H
#define CDDP_COMM_THREADS_TEAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm_ops.h"

typedef struct threads_slot {
    /* Under team->lock: */
    uint64_t number; /* of the collective that is being started here */
    int arrived;
    comm_request_t *requests; /* [size] */
    void **views;             /* [size * COMM_VIEWS_MAX] */
    uint32_t pieces;
    /* (number + 1) << 24 | pieces left to claim; the number keeps a late
     * claimer from taking a piece of the slot's next collective. */
    atomic_uint_fast64_t claim;
    atomic_uint_fast32_t done;      /* pieces done */
    atomic_uint_fast64_t completed; /* number + 1 of the last completed one */
} threads_slot_t;

typedef struct threads_member {
    atomic_uint_fast64_t started; /* collectives started */
    _Atomic double progress;      /* instant of the last sign of progress */
    atomic_bool waiting;          /* inside wait */
    atomic_bool left;             /* closed the group */
    _Atomic(const char *) phase;  /* as reported, or NULL */
    atomic_int_fast64_t step;
} threads_member_t;

typedef struct threads_team {
    uint64_t nonce;
    int size;
    double timeout;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* completed, failed, left */
    threads_slot_t slots[COMM_WORKS_MAX];
    threads_member_t *members; /* [size] */
    int users;                 /* under lock: open handles */
    atomic_bool failed;
    err_t fault;        /* under lock; set once, before failed */
    atomic_int working; /* threads inside a piece */
    bool spin;          /* more cores than ranks */
} threads_team_t;

/* Make (rank 0) or find (others) the team of [oob]; collective. The last user
 * frees it. */
err_code_t threads_team_join(const comm_oob_t *oob, double timeout,
                             threads_team_t **out, err_t *err);
void threads_team_free(threads_team_t *team);

/* Claim and do one piece of the open collective [number]; false: there is none
 * left to claim, or the team has failed. */
bool threads_piece_do(threads_team_t *team, uint64_t number);

/* Mark the collective [number] in [slot] complete and wake its waiters. */
void threads_slot_complete(threads_team_t *team, threads_slot_t *slot,
                           uint64_t number);

/* Into how many pieces [request], of rank 0, is cut. */
uint32_t threads_piece_count(const comm_request_t *request, int size);

/* (number + 1) << THREADS_CLAIM_BITS | pieces left */
#define THREADS_CLAIM_BITS 24

#endif
