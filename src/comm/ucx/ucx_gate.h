/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Gate: who may connect to the TCP sockets on which UCX listens. UCX takes
 * whoever comes, so the kernel has to look first: a filter on each listening
 * socket drops the first packet of every connection that does not come from an
 * address of the group's machines. It needs no privilege, and it is inherited
 * by the connections themselves, whose packets it looks at, too.
 *
 * Ranks that share memory never connect to each other: their own machine is a
 * stranger, too, so that other users of this node stay outside.
 */
#ifndef CDDP_COMM_UCX_GATE_H
#define CDDP_COMM_UCX_GATE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/ucx/ucx_fabric.h"

/* Ranges of addresses in a filter: so many fit into the kernel's optmem_max (20
 * KiB). */
#define UCX_GATE_RANGES 400
#define UCX_GATE_CODE (3 * UCX_GATE_RANGES + 2)

/* Sockets of this process that listen to IPv4. Descriptors below FD_MOST. */
#define UCX_GATE_FDS 4096
typedef struct ucx_gate_fds {
    uint8_t listens[UCX_GATE_FDS];
} ucx_gate_fds_t;

void ucx_gate_look(ucx_gate_fds_t *out);

/* Write to [code] the filter that lets IPv4 packets from [addresses] pass (in
 * the byte order of the host; sorted here) and drops all others; the number of
 * instructions. Above UCX_GATE_RANGES ranges of addresses that follow each
 * other, the nearest ones are merged, with what lies between them. Pure. */
size_t ucx_gate_filter(uint32_t *addresses, size_t count,
                       struct sock_filter code[UCX_GATE_CODE]);

typedef struct ucx_gate {
    const ucx_fabric_t *fabrics; /* [size] */
    const uint8_t *reached;      /* [size]: by this rank over the network? */
    int size;
    const ucx_face_t *face; /* only addresses of its network; NULL: all */
    const void *worker;     /* UCX's address of this rank's worker, */
    size_t bytes;           /* of so many bytes */
} ucx_gate_t;

/* Put a filter before the sockets that listen now, did not [before], and whose
 * port stands in the worker's address; it lets the addresses of the reached
 * ranks pass. *count: sockets that got one. ERR_UNAVAILABLE if the kernel
 * refuses, ERR_MEMORY. */
err_code_t ucx_gate_close(const ucx_gate_t *gate, const ucx_gate_fds_t *before,
                          int *count, err_t *err);

#endif
