/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds out which ranks are on this node. A host name may be wrong (containers,
 * images). So a rank of the same host name must also show a nonce through
 * /proc: it keeps the nonce in a memfd. Whoever can read it there has the same
 * kernel and the same process ids, so a pidfd of that id is that rank. Both
 * ranks must have verified each other, because their endpoints must be of one
 * kind.
 */
#ifndef CDDP_COMM_UCX_LOCAL_H
#define CDDP_COMM_UCX_LOCAL_H

#include "comm/node/node_place.h"
#include "comm/ucx/ucx_fabric.h"
#include "comm/ucx/ucx_net.h"

/* What a rank tells the others of itself. */
typedef struct ucx_info {
    int64_t pid;
    int64_t fd; /* memfd that contains the nonce; -1: none */
    uint64_t nonce;
    uint64_t cpus; /* hash of the cores that it may use */
    ucx_fabric_t fabric;
} ucx_info_t;

/* The node and the cores of a rank. */
struct ucx_local {
    node_place_t place;
    bool core; /* each rank that shares our cores has a core of its own */
    bool spin; /* and there is one core more */
};

/* Fill [info]. *fd is to be closed when ucx_local_find has returned on all
 * ranks; -1: there is no memfd, and all ranks count as remote. ERR_IO. */
err_code_t ucx_local_info(ucx_info_t *info, int *fd, err_t *err);
/* Set [local] and [pidfd] of the peers, and *out. Collective; blocks as
 * oob->exchange does. node_place_close frees out->place. */
err_code_t ucx_local_find(ucx_net_t *net, const comm_oob_t *oob,
                          const ucx_info_t *infos, ucx_local_t *out,
                          err_t *err);
/* Close the pidfds of the peers. */
void ucx_local_close(ucx_net_t *net);
/* After [fault]: if its culprit is on this node and does not end by itself,
 * kill it, or the job step would wait for it for ever. Blocks for a part of the
 * timeout, at most 10 s. Owner, after the comm thread has ended. */
void ucx_local_end(const ucx_net_t *net, const err_t *fault);

#endif
