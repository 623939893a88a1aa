/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fabric: finds the network that the ranks of a group share, and so where UCX
 * may listen. UCX (1.13) trusts anyone who connects to one of its TCP sockets:
 * one header of 13 bytes ends the process, another writes to its memory. So UCX
 * gets no more sockets than the group needs, and each of them is protected by a
 * gate (ucx_gate.c).
 */
#ifndef CDDP_COMM_UCX_FABRIC_H
#define CDDP_COMM_UCX_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UCX_FACES 12     /* maximum number of interfaces that a rank reports */
#define UCX_FACE_NAME 16 /* IFNAMSIZ */
#define UCX_DEVICES 512  /* maximum bytes of a list of devices */

/* A network interface that is up and has an IPv4 address; not loopback. */
typedef struct ucx_face {
    char name[UCX_FACE_NAME];
    uint32_t address, mask; /* in host byte order */
    int64_t speed;          /* Mbit/s; 0: unknown */
} ucx_face_t;

/* What a rank tells the others about its network. */
typedef struct ucx_fabric {
    uint64_t network; /* hash of machine and network namespace */
    uint64_t memory;  /* hash of machine, IPC and PID namespaces */
    int32_t count;
    bool more;        /* there are more interfaces than UCX_FACES */
    bool own_tls;     /* UCX_TLS is set in the user's environment */
    bool own_devices; /* UCX_NET_DEVICES is set there */
    bool open;        /* CDDP_NET_GATE=off is set there */
    ucx_face_t faces[UCX_FACES];
} ucx_fabric_t;

/* Fill [out] for this process. Interfaces that cannot be listed count as
 * none. */
void ucx_fabric_find(ucx_fabric_t *out);

/* How the ranks of a group reach each other. */
typedef enum ucx_reach {
    UCX_REACH_MEMORY,   /* all ranks share memory: no network is used */
    UCX_REACH_LOOPBACK, /* all ranks share a network namespace */
    UCX_REACH_FACE, /* over an interface in a network that all ranks share */
    UCX_REACH_ANY   /* unknown: UCX chooses among all interfaces */
} ucx_reach_t;

/*
 * Decide how the group is reached. Pure; all ranks get one kind. [fabrics] are
 * those of all ranks. [local]: all ranks have proved to be on one node. With
 * UCX_REACH_FACE *face is set to the index of this rank's interface. Its
 * network is one that all ranks have, and in which no two machines have one
 * address (as they do in container bridges): the fastest of these networks;
 * among equally fast ones the first of rank 0.
 */
ucx_reach_t ucx_fabric_reach(const ucx_fabric_t *fabrics, int size, int rank,
                             bool local, int *face);

/* The value of UCX_NET_DEVICES for interface [face]: the interface and the
 * active ports of RDMA devices, which do not listen on TCP. [room] is
 * UCX_DEVICES. */
void ucx_fabric_devices(const ucx_face_t *face, char *out, size_t room);

#endif
