/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Gate: decides who may connect to the TCP sockets on which UCX listens. UCX
 * accepts any connection, so the kernel has to check first: a filter on each
 * listening socket drops the first packet of every connection that does not
 * come from an address of the group's machines. The filter needs no privilege.
 * Connections inherit it, so their later packets are checked, too.
 *
 * Ranks that share memory never connect to each other. So even the rank's own
 * machine is refused, and other users of this node have no access.
 */
#ifndef CDDP_COMM_UCX_GATE_H
#define CDDP_COMM_UCX_GATE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/ucx/ucx_fabric.h"

/* Maximum number of address ranges in a filter, limited by the kernel's
 * optmem_max (20 KiB). */
#define UCX_GATE_RANGES 400
#define UCX_GATE_CODE (3 * UCX_GATE_RANGES + 2)

/* The sockets of this process that listen on IPv4, among descriptors below
 * UCX_GATE_FDS. */
#define UCX_GATE_FDS 4096
typedef struct ucx_gate_fds {
    uint8_t listens[UCX_GATE_FDS];
} ucx_gate_fds_t;

void ucx_gate_look(ucx_gate_fds_t *out);

/* Write to [code] the filter that passes IPv4 packets from [addresses] (in host
 * byte order; sorted here) and drops all others. Returns the number of
 * instructions. Consecutive addresses form ranges; if there are more than
 * UCX_GATE_RANGES, the nearest ranges are merged, and the addresses between
 * them pass, too. Pure. */
size_t ucx_gate_filter(uint32_t *addresses, size_t count,
                       struct sock_filter code[UCX_GATE_CODE]);

typedef struct ucx_gate {
    const ucx_fabric_t *fabrics; /* [size] */
    /* [size]: this rank reaches that rank over the network. */
    const uint8_t *reached;
    int size;
    /* Pass only addresses of its network; NULL: of all networks. */
    const ucx_face_t *face;
    const void *worker; /* UCX's address of this rank's worker */
    size_t bytes;       /* bytes of that address */
} ucx_gate_t;

/* Attach a filter to each socket that listens now, did not listen [before], and
 * whose port is in the worker's address. It passes the addresses of the reached
 * ranks. *count is set to the number of these sockets. ERR_UNAVAILABLE if the
 * kernel refuses, ERR_MEMORY. */
err_code_t ucx_gate_close(const ucx_gate_t *gate, const ucx_gate_fds_t *before,
                          int *count, err_t *err);

#endif
