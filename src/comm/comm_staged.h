/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The staged group: collectives on the memory of a device, by a backend that
 * works on the host's memory. A thread cuts each collective into segments,
 * copies a segment to the host, lets the inner group carry it out there, and
 * copies the result back (staged_segment.h). Copies of some segments run while
 * others are with the inner group. It has the backend name, the deadlines and
 * the faults of the inner group. If a call of dev fails, it ends the
 * collectives of all ranks with a fault that names this rank.
 */
#ifndef CDDP_COMM_COMM_STAGED_H
#define CDDP_COMM_COMM_STAGED_H

#include "comm/comm.h"

/* Open a staged group over [inner], for memory of [dev]. It owns [inner], which
 * is closed on failure, too, except for what comm_group_close frees.
 * Collective: if one rank fails, all do, with its reason. */
err_code_t comm_staged_open(comm_group_t *inner, dev_device_t *dev,
                            comm_group_t **out, err_t *err);

/* Bytes of the host's memory that a staged group of [ranks] ranks pins on each
 * of them. */
size_t comm_staged_bytes(int ranks);

#endif
