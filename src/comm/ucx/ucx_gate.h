/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Gate: decides who may connect to the TCP sockets on which UCX listens. UCX
 * accepts any connection, so the kernel has to choose first. The gate opens a
 * second socket, the sink, beside each socket of UCX. The sink listens at the
 * same address and port as UCX's socket (SO_REUSEPORT). A program in the kernel
 * (SO_ATTACH_REUSEPORT_CBPF, Linux 4.6) looks at the address from which a new
 * connection comes. If it is an address of the group's machines, UCX's socket
 * gets the connection, else the sink. The sink drops packets, and nobody
 * accepts from it. None of this needs a privilege. Packets of accepted
 * connections do not pass through the program.
 *
 * Ranks that share memory never connect to each other. So the sink gets even
 * connections from the rank's own machine, and other users of this node cannot
 * connect to UCX. The program lets connections from this machine pass only if
 * ranks of one machine reach each other over TCP.
 */
#ifndef CDDP_COMM_UCX_GATE_H
#define CDDP_COMM_UCX_GATE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/ucx/ucx_fabric.h"

/* Maximum number of address ranges in a program, limited by the kernel's
 * optmem_max (20 KiB). */
#define UCX_GATE_RANGES 400
#define UCX_GATE_CODE (3 * UCX_GATE_RANGES + 2)
/* Number of descriptors that are looked at, from 0 on. */
#define UCX_GATE_FDS 4096
/* Maximum number of sockets on which one worker listens: one per interface, and
 * the loopback. */
#define UCX_GATE_SINKS (UCX_IFACES + 1)

typedef struct ucx_gate_fds {
    uint8_t listens[UCX_GATE_FDS]; /* true: it is a TCP socket that listens */
} ucx_gate_fds_t;

/* Find the sockets of this process that listen on IPv4. */
void ucx_gate_look(ucx_gate_fds_t *out);

/* Write to [code] a program that returns 0 (the place of UCX's socket) for IPv4
 * packets from [addresses] (in host byte order; sorted here), and 1 (the place
 * of the sink) for all others. Returns the number of instructions. Consecutive
 * addresses form ranges. If there are more than UCX_GATE_RANGES, the nearest
 * ranges are merged, and the program returns 0 for the addresses between them,
 * too. Pure. */
size_t ucx_gate_program(uint32_t *addresses, size_t count,
                        struct sock_filter code[UCX_GATE_CODE]);

typedef struct ucx_gate {
    const ucx_fabric_t *fabrics; /* [size] */
    const uint8_t *reached;      /* [size]: true: reached over the network */
    int size;
    /* Pass only addresses in its network; NULL: in all networks. */
    const ucx_iface_t *iface;
    bool loopback;      /* pass 127.0.0.1, too */
    const void *worker; /* the address of this rank's worker */
    size_t bytes;       /* bytes of that address */
} ucx_gate_t;

/* The sinks of one worker. All zeros: the worker has none. */
typedef struct ucx_gate_sinks {
    int count;
    int fds[UCX_GATE_SINKS];
} ucx_gate_sinks_t;

/* Open a sink beside each new socket of the worker, and let only connections
 * from the addresses of the reached ranks come to the worker. A socket is new
 * if it listens now and did not listen [before]. It is the worker's if its port
 * is in the worker's address. The sinks are added to [sinks], one per socket;
 * they are closed by exec. The caller has to close them by ucx_gate_open, also
 * after an error. Does not block. ERR_UNAVAILABLE if the kernel refuses (then
 * the sockets that have no sink yet are open to everybody), ERR_MEMORY. */
err_code_t ucx_gate_close(const ucx_gate_t *gate, const ucx_gate_fds_t *before,
                          ucx_gate_sinks_t *sinks, err_t *err);
/* Close the sinks. The worker must have been destroyed before: without a sink
 * the kernel gives every connection to the worker. */
void ucx_gate_open(ucx_gate_sinks_t *sinks);

#endif
