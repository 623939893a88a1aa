/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm: a group of ranks, and collective operations on it (comm_collective.h).
 *
 * Every wait has a deadline: if a peer dies, or sends no beat or makes no
 * progress for config.timeout seconds, all pending and future works end with
 * ERR_PEER, which names the culprit.
 *
 * Thread rule: one thread (the owner) calls start, wait and close; poll may be
 * called from any thread. Nothing is allocated between open and close, except
 * by comm_arena_open.
 *
 * Backends: self (one rank), threads (ranks of one process), ucx; for the
 * memory of GPUs also nccl, beside a group of the host.
 */
#ifndef CDDP_COMM_COMM_H
#define CDDP_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/comm_collective.h"

typedef struct comm_arena comm_arena_t;

/* Out-of-band all-gather, used while a group is opened: see boot_exchange. comm
 * does not know who provides it. */
typedef struct comm_oob {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* (optional) Name of this rank's node; default: its host name. Ranks with
     * different names are never on one node. Ranks with equal names are on one
     * node only if they can prove it. */
    const char *host;
    /* (optional) The name of this rank in faults; default: its number. */
    const int *name;
} comm_oob_t;

typedef struct comm_config {
    const char *backend; /* "auto", "self", "threads", "ucx", "nccl" */
    double timeout;      /* seconds: fault.timeout */
    /* (optional) Which algorithms carry out collectives. Copied. Must be equal
     * on all ranks, or the group does not open. Default: the built-in table. */
    const struct comm_table *table;
    /* (optional) A file with such a table, to be used instead. If a rank cannot
     * read it, all ranks fail with that reason. */
    const char *table_path;
    /* (optional) The device whose memory collectives work on; outlives the
     * group. The same backend of dev on all ranks. Default: the host. */
    dev_device_t *dev;
    /* For nccl: a group of the same ranks for the host's memory. It finds their
     * faults, and outlives this group. comm_split_whole sets it. */
    comm_group_t *beside;
    /* For nccl: bytes of the device's memory in which sums along a tree are
     * formed (comm_allreduce_tree_start); COMM_TREE_SCRATCH is a good number.
     * 0: this group makes no such sums. All ranks must give the same number. */
    size_t tree_scratch;
} comm_config_t;

/* With this tree_scratch, slices of large sums are large enough to be sent
 * fast. */
#define COMM_TREE_SCRATCH ((size_t)16 << 20)

/* For signal handlers: return whether the calling thread is inside the library
 * that moves data (UCX). If it dies there, bytes from the network may be the
 * reason. Async-signal-safe. */
bool comm_in_transport(void);

/* ---- group ------------------------------------------------------------- */

/*
 * Open a group over the ranks of [oob]. "auto" means self for one rank, else
 * ucx. Where the host cannot access the memory of config.dev, data of threads
 * and ucx passes through host memory (comm_staged.h). "threads" requires that
 * all ranks are threads of this process: the first exchange distributes the
 * address of the shared team (verified by a nonce and the process id).
 * Collective; blocks, bounded by the timeout of the exchange and by
 * config.timeout.
 */
err_code_t comm_group_open(const comm_config_t *config, const comm_oob_t *oob,
                           comm_group_t **out, err_t *err);

int comm_group_rank(const comm_group_t *group);
int comm_group_size(const comm_group_t *group);
double comm_group_timeout(const comm_group_t *group); /* seconds */
/* The device whose memory collectives work on; NULL: the host can access this
 * memory. */
dev_device_t *comm_group_dev(const comm_group_t *group);
const char *comm_group_backend(const comm_group_t *group);
/* Are collectives only enqueued on streams of the group's device? If so, start
 * and comm_work_wait_on do not wait for the device, and a graph of the device
 * can contain collectives. */
bool comm_group_enqueues(const comm_group_t *group);
const char *comm_group_host(const comm_group_t *group, int rank);

/* How this rank sends to other hosts: transport and device, such as "tcp:eth0"
 * or "rc_mlx5:mlx5_0:1". NULL: the backend has no network, or this rank has not
 * sent to another host yet. Any thread; never blocks. */
const char *comm_group_route(const comm_group_t *group);

/* Write the active InfiniBand ports of this host, as "mlx5_0:1,mlx5_1:1", to
 * [out] of [room] bytes; "": there are none. RDMA over Ethernet (RoCE) does not
 * count. Tests name another folder than /sys by $CDDP_SYSFS. */
void comm_infiniband_ports(char *out, size_t room);

/* Report the progress of this rank: the training step and a static name of the
 * phase ("forward", "checkpoint"). Beats carry both, faults print them. Each
 * call counts as progress. Any thread; never blocks. */
void comm_group_report(comm_group_t *group, int64_t step, const char *phase);

/* ERR_OK while every peer is well, otherwise the fault (ERR_PEER). Any thread;
 * never blocks. */
err_code_t comm_group_check(comm_group_t *group, err_t *err);

/* To be called by the owner while it waits for the group's device, [waited]
 * seconds after that wait began. ERR_OK: go on waiting. Otherwise the fault of
 * the group (as comm_group_check returns it), or ERR_UNAVAILABLE: the device of
 * this rank reports an error or makes no progress. Never blocks. */
err_code_t comm_group_look(comm_group_t *group, double waited, err_t *err);

/* Tell the peers that this rank cannot take part in collectives any more,
 * because of [reason] (its device failed, for example). All pending and future
 * works of all ranks end with ERR_PEER, which names this rank. Without effect
 * in a group of one rank. Any thread; never blocks. */
void comm_group_fail(comm_group_t *group, const err_t *reason);

/* Return [rc], the result of this rank's own call of dev, whose error is
 * [reason], as a result of the group. If [rc] is an error, comm_group_fail
 * tells it to the peers, and [err] gets the fault of the group; in a group of
 * one rank [err] gets [reason]. Any thread; never blocks. */
err_code_t comm_group_result(comm_group_t *group, err_code_t rc,
                             const err_t *reason, err_t *err);

/* Tell the peers of [fault], an ERR_PEER that another group of this rank
 * returned. All pending and future works of all ranks in [group] end with
 * [fault]. So when this rank leaves because of [fault], the peers do not take
 * this rank for the culprit. No effect if [group] has a fault already, or has
 * one rank. Any thread; never blocks. */
void comm_group_tell(comm_group_t *group, const err_t *fault);

/* Leave the group, and tell the peers, so that they do not take it for a death.
 * Returns within the timeout even if works are pending or have failed. After a
 * fault, a culprit on this node that does not end by itself is killed, so that
 * the job step can end. NULL allowed. */
void comm_group_close(comm_group_t *group);

/* ---- arena -------------------------------------------------------------- */

/*
 * Open memory for which the backend's reductions are fastest (shared within the
 * node, registered, or plain memory, depending on the backend), on the group's
 * device if it has one. Collective: [bytes] is equal on all ranks. Zeroed,
 * aligned to MEM_ALIGN. Close it before the group. If one rank fails, no rank
 * waits for it; but other ranks may succeed, so ranks vote after this call
 * (comm_vote).
 */
err_code_t comm_arena_open(comm_group_t *group, size_t bytes,
                           comm_arena_t **out, err_t *err);
void *comm_arena_data(comm_arena_t *arena);
void comm_arena_close(comm_arena_t *arena);

#endif
