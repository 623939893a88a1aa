/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Gate: decides who may connect to the TCP sockets on which UCX listens. UCX
 * accepts any connection, so the kernel has to check first: a filter on each
 * listening socket drops all packets that do not come from an address of the
 * group's machines. Connections inherit the filter. It needs no privilege.
 *
 * Ranks that share memory never connect to each other. So the filter drops even
 * packets from the rank's own machine, and other users of this node cannot
 * connect.
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
/* Number of descriptors that are looked at, from 0 on. */
#define UCX_GATE_FDS 4096

typedef struct ucx_gate_fds {
    uint8_t listens[UCX_GATE_FDS]; /* true: it is a TCP socket that listens */
} ucx_gate_fds_t;

/* Find the sockets of this process that listen on IPv4. */
void ucx_gate_look(ucx_gate_fds_t *out);

/* Write to [code] a filter that passes IPv4 packets from [addresses] (in host
 * byte order; sorted here) and drops all others. Returns the number of
 * instructions. Consecutive addresses form ranges. If there are more than
 * UCX_GATE_RANGES, the nearest ranges are merged, and the filter passes the
 * addresses between them, too. Pure. */
size_t ucx_gate_filter(uint32_t *addresses, size_t count,
                       struct sock_filter code[UCX_GATE_CODE]);

typedef struct ucx_gate {
    const ucx_fabric_t *fabrics; /* [size] */
    const uint8_t *reached;      /* [size]: true: reached over the network */
    int size;
    /* Pass only addresses in its network; NULL: in all networks. */
    const ucx_iface_t *iface;
    const void *worker; /* the address of this rank's worker */
    size_t bytes;       /* bytes of that address */
} ucx_gate_t;

/* Attach to each new socket of the worker a filter that passes the addresses of
 * the reached ranks. A socket is new if it listens now and did not listen
 * [before]. It is the worker's if its port is in the worker's address. *count
 * is set to the number of these sockets. ERR_UNAVAILABLE if the kernel refuses,
 * ERR_MEMORY. */
err_code_t ucx_gate_close(const ucx_gate_t *gate, const ucx_gate_fds_t *before,
                          int *count, err_t *err);

#endif
