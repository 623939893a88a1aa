/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of a lane is "# lane[0]:  2:tcp/eth0.0 md[1] -> md[1]/tcp/...", where
 * the last number of "tcp/eth0.0" counts the paths of a device. */
bool ucx_route_read(const char *text, char *out)
{
    const char *lane = strstr(text, "lane[");
    char name[UCX_ROUTE], *device, *path;

    out[0] = '\0';
    if (lane == NULL || sscanf(lane, "lane[%*d]: %*d:%63s", name) != 1)
        return false;
    device = strchr(name, '/');
    if (device == NULL)
        return false;
    *device = ':';
    path = strrchr(device, '.');
    if (path != NULL && path[1] != '\0' &&
        path[1 + strspn(path + 1, "0123456789")] == '\0')
        *path = '\0';
    snprintf(out, UCX_ROUTE, "%s", name);
    return true;
}

bool ucx_route_find(ucp_ep_h endpoint, char *out)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    bool found;

    out[0] = '\0';
    if (file == NULL)
        return false;
    ucp_ep_print_info(endpoint, file);
    found = fclose(file) == 0 && ucx_route_read(text, out);
    free(text);
    return found;
}
