/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fabric: which network the ranks of a group share, and so where UCX may
 * listen. UCX (1.13) trusts whoever connects to one of its TCP sockets: a
 * header of 13 bytes ends the process, another one writes to its memory. So it
 * gets no more sockets than the group needs, and a gate before each of them
 * (ucx_gate.c).
 */
#ifndef CDDP_COMM_UCX_FABRIC_H
#define CDDP_COMM_UCX_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UCX_FACES 12     /* network interfaces that a rank tells of */
#define UCX_FACE_NAME 16 /* IFNAMSIZ */
#define UCX_DEVICES 512  /* bytes of a list of devices */

/* A network interface with an IPv4 address that is up; no loopback. */
typedef struct ucx_face {
    char name[UCX_FACE_NAME];
    uint32_t address, mask; /* in the byte order of the host */
    int64_t speed;          /* Mbit/s; 0: unknown */
} ucx_face_t;

/* What a rank tells the others of its network. */
typedef struct ucx_fabric {
    uint64_t network; /* hash of machine and network namespace */
    uint64_t memory;  /* hash of machine, IPC and PID namespace */
    int32_t count;
    bool more;        /* than UCX_FACES */
    bool own_tls;     /* the user's environment has UCX_TLS */
    bool own_devices; /* UCX_NET_DEVICES */
    bool open;        /* CDDP_NET_GATE=off */
    ucx_face_t faces[UCX_FACES];
} ucx_fabric_t;

/* What is to be told of this process. Interfaces that cannot be listed count as
 * none. */
void ucx_fabric_find(ucx_fabric_t *out);

/* How a group reaches its ranks. */
typedef enum ucx_reach {
    UCX_REACH_MEMORY,   /* all share memory: no network at all */
    UCX_REACH_LOOPBACK, /* all share a network namespace */
    UCX_REACH_FACE,     /* over the interface that they have in common */
    UCX_REACH_ANY       /* unknown: UCX chooses among all interfaces */
} ucx_reach_t;

/*
 * Pure, and the same kind on all ranks. [fabrics] are those of all ranks;
 * [local]: all prove to be on one node. *face becomes the number of this rank's
 * interface with UCX_REACH_FACE. The network is one that all ranks have, in
 * which no two machines have one address (as container bridges do); the
 * fastest, then the one with the lowest number.
 */
ucx_reach_t ucx_fabric_reach(const ucx_fabric_t *fabrics, int size, int rank,
                             bool local, int *face);

/* UCX_NET_DEVICES for interface [face]: that and the active ports of RDMA
 * devices, which listen to no TCP. [room] UCX_DEVICES. */
void ucx_fabric_devices(const ucx_face_t *face, char *out, size_t room);

#endif
