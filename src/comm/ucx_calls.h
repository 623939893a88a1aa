/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Calls: what a rank asked for in a collective. Every message's tag carries a
 * digest of it, so that data of different calls never meets. Ranks whose calls
 * differ then wait for each other; after a moment each tells its neighbours
 * what it called, and who called something else says so for all. That goes for
 * works of the node stage, too, once their owners sleep: where only some of a
 * node's ranks have their data in an arena, no other message would be sent.
 */
#ifndef CDDP_COMM_UCX_CALLS_H
#define CDDP_COMM_UCX_CALLS_H

#include <stdint.h>

#include "comm/comm_ops.h"

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

typedef struct ucx_call {
    uint64_t number; /* of the collective, + 1; 0: none */
    int64_t count;
    int32_t root;
    uint8_t kind, type, op;
    uint8_t arena; /* the node stage takes part */
} ucx_call_t;

#define UCX_DIGEST_BITS 20
#define UCX_CALLS 256 /* remembered */

typedef struct ucx_calls {
    ucx_call_t begun[UCX_CALLS]; /* here; by number */
    ucx_call_t slept; /* under group->lock: what the owner last slept for */
    ucx_call_t mine;  /* to be told */
    uint64_t told;    /* number + 1 last told */
    uint64_t ahead;   /* highest number + 1 heard */
} ucx_calls_t;

/* The driver begins [work]; the digest of its call. */
uint32_t ucx_calls_begin(ucx_group_t *group, const ucx_work_t *work);
/* The owner is about to sleep for [work], of the node stage. */
void ucx_calls_sleep(ucx_group_t *group, const ucx_work_t *work);
/* At [now]: tell what takes long; the instant by which to look again, at the
 * latest [instant]. */
double ucx_calls_tick(ucx_group_t *group, double now, double instant);
/* [from] called [call]. */
void ucx_calls_heard(ucx_group_t *group, int from, const ucx_call_t *call);

#endif
