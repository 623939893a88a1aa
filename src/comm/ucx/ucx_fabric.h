/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fabric: finds the network that the ranks of a group share, and thus the
 * interface on which UCX may listen. UCX (1.13) trusts anyone who connects to
 * one of its TCP sockets: one header of 13 bytes ends the process, another one
 * writes to its memory. So UCX gets no more sockets than the group needs, and
 * each of them is protected by a gate (ucx_gate.h). No function here blocks or
 * exchanges anything.
 */
#ifndef CDDP_COMM_UCX_FABRIC_H
#define CDDP_COMM_UCX_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UCX_IFACES 12     /* maximum number of interfaces that a rank reports */
#define UCX_IFACE_NAME 16 /* IFNAMSIZ */
#define UCX_DEVICES 512   /* maximum bytes of a list of devices */

/* A network interface that is up and has an IPv4 address; not loopback. */
typedef struct ucx_iface {
    char name[UCX_IFACE_NAME];
    uint32_t address, mask; /* in host byte order */
    int64_t speed;          /* Mbit/s; 0: unknown */
} ucx_iface_t;

/* What a rank tells the others about its network. */
typedef struct ucx_fabric {
    uint64_t network; /* hash of machine and network namespace */
    uint64_t memory;  /* hash of machine, IPC and PID namespaces */
    int32_t count;    /* number of [ifaces] */
    bool more;        /* there are more interfaces than UCX_IFACES */
    bool own_tls;     /* the user's environment has UCX_TLS */
    bool own_devices; /* it has UCX_NET_DEVICES */
    bool open;        /* it has CDDP_NET_GATE=off */
    ucx_iface_t ifaces[UCX_IFACES];
} ucx_fabric_t;

/* Fill [out] for this process. If the interfaces cannot be listed, there are
 * none. */
void ucx_fabric_find(ucx_fabric_t *out);

/* How the ranks of a group reach each other. */
typedef enum ucx_reach {
    UCX_REACH_MEMORY,   /* all ranks share memory: no network is used */
    UCX_REACH_LOOPBACK, /* all ranks share a network namespace */
    UCX_REACH_IFACE, /* over an interface in a network that all ranks share */
    UCX_REACH_ANY    /* unknown: UCX chooses among all interfaces */
} ucx_reach_t;

/*
 * Decide how the ranks of a group reach each other. Pure; the same on all
 * ranks. [fabrics] are those of all ranks. [local]: all ranks have proved to be
 * on one node.
 *
 * With UCX_REACH_IFACE *iface is set to the index of this rank's interface. All
 * ranks have an interface in its network, and no two machines have the same
 * address there (as they have in container bridges). Of several such networks
 * it is the fastest; of equally fast ones that with the lowest address.
 */
ucx_reach_t ucx_fabric_reach(const ucx_fabric_t *fabrics, int size, int rank,
                             bool local, int *iface);

/* Write to [out] the value of UCX_NET_DEVICES for [iface]: the interface, and
 * the active ports of RDMA devices, which do not listen on TCP. [out] has
 * [room] bytes, which should be UCX_DEVICES. */
void ucx_fabric_devices(const ucx_iface_t *iface, char *out, size_t room);

#endif
