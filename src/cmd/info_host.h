/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a host offers, for cddp-info --topology: sockets, caches, memory and its
 * limit, and the transports of UCX with their devices. */
#ifndef CDDP_CMD_INFO_HOST_H
#define CDDP_CMD_INFO_HOST_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Write the lines, each indented by two spaces, to [out] of [room] bytes (cut
 * if they are longer). [topology] is a loaded one, of the CPUs that this
 * process may use; NULL: unknown. */
void info_host(hwloc_topology_t topology, char *out, size_t room);

/* Append the transports in [text], as ucp_context_print_info writes them, to
 * [out] as one line: "ucx: on this host posix cma; to others tcp/eth0". Pure.
 * False if there are none: then nothing is appended. */
bool info_host_transports(const char *text, str_buf_t *out);

#endif
