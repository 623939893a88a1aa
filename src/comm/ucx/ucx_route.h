/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* route: the transport by which UCX sends to a peer. UCX 1.13 has no function
 * for this, so we read what UCX prints about an endpoint. */
#ifndef CDDP_COMM_UCX_ROUTE_H
#define CDDP_COMM_UCX_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <ucp/api/ucp.h>

#define UCX_ROUTE 64 /* bytes of a route, such as "rc_mlx5:mlx5_0:1" */

/* Write the transport and the device of [endpoint]'s first lane to [out], of
 * UCX_ROUTE bytes, as "tcp:eth0". False, and "": not known. Only the driver
 * calls this. */
bool ucx_route_find(ucp_ep_h endpoint, char *out);

/* The same for what ucp_ep_print_info has printed. Pure. */
bool ucx_route_read(const char *text, char *out);

#endif
