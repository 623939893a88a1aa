/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm: a group of ranks, and collective operations on it (comm_collective.h).
 *
 * Every wait has a deadline: no beat or no progress of a peer for
 * config.timeout seconds, or its death, ends every pending and future work with
 * ERR_PEER naming the culprit.
 *
 * Thread rule: one thread (the owner) calls start, wait and close; poll may be
 * called from any thread. Nothing is allocated between open and close, except
 * by comm_arena_open.
 *
 * Backends: self (one rank), threads (ranks of one process), ucx.
 */
#ifndef CDDP_COMM_COMM_H
#define CDDP_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/comm_collective.h"

typedef struct comm_arena comm_arena_t;

/* Out-of-band all-gather used while opening: see boot_exchange. comm never
 * knows who provides it. */
typedef struct comm_oob {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* (optional) Name of this rank's node; default: its host name. Ranks of
     * different names never count as ranks of one node; those of one name only
     * if they prove it. */
    const char *host;
    /* (optional) What faults call this rank; default: its number. */
    const int *name;
} comm_oob_t;

typedef struct comm_config {
    const char *backend; /* "auto", "self", "threads", "ucx" */
    double timeout;      /* seconds: fault.timeout */
    /* (optional) Which algorithms carry out collectives; copied; the same on
     * all ranks, or the group does not open. Default: the built-in table. */
    const struct comm_table *table;
    /* (optional) A file with that table, in place of it. A rank that cannot
     * read it ends all of them, and all say why. */
    const char *table_path;
} comm_config_t;

/* For handlers of signals: is the calling thread inside of the library that
 * moves data (UCX)? What it dies of there may have come from the network.
 * Async-signal-safe. */
bool comm_in_transport(void);

/* ---- group ------------------------------------------------------------- */

/*
 * Open a group over the ranks of [oob]. "auto": self for one rank, else ucx.
 * "threads" needs all ranks to be threads of this process: the first exchange
 * hands the shared team's address around (verified by a nonce and the pid).
 * Collective; blocks, bounded by the exchange's own timeout and config.timeout.
 */
err_code_t comm_group_open(const comm_config_t *config, const comm_oob_t *oob,
                           comm_group_t **out, err_t *err);

int comm_group_rank(const comm_group_t *group);
int comm_group_size(const comm_group_t *group);
double comm_group_timeout(const comm_group_t *group); /* seconds */
const char *comm_group_backend(const comm_group_t *group);
const char *comm_group_host(const comm_group_t *group, int rank);

/* Report where this rank is (beats carry it; faults print it): training step
 * and a static phase name ("forward", "checkpoint"). A call is progress, too.
 * Any thread; never blocks. */
void comm_group_report(comm_group_t *group, int64_t step, const char *phase);

/* ERR_OK while every peer is well, else the fault (ERR_PEER). Never blocks. */
err_code_t comm_group_check(comm_group_t *group, err_t *err);

/* Leave: tells the peers so that nobody takes it for a death. With pending or
 * failed work it still returns within the timeout. After a fault, a culprit on
 * this node that only stalls is killed, so that the job step can end. NULL
 * allowed. */
void comm_group_close(comm_group_t *group);

/* ---- arena -------------------------------------------------------------- */

/*
 * Memory that the backend reduces fastest (plain here; node-shared or
 * registered in other backends). Collective: the same [bytes] on all ranks.
 * Zeroed, aligned to MEM_ALIGN. Closed before the group.
 */
err_code_t comm_arena_open(comm_group_t *group, size_t bytes,
                           comm_arena_t **out, err_t *err);
void *comm_arena_data(comm_arena_t *arena);
void comm_arena_close(comm_arena_t *arena);

#endif
