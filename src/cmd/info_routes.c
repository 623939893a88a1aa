/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/info_routes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cmd/info_check.h"
#include "comm/comm.h"

typedef struct route {
    char text[64]; /* "tcp:eth0"; "": no message went to another host */
} route_t;

/* Is this rank the first one on its host with its route? */
static bool route_is_new(const comm_group_t *group, const route_t *routes,
                         int rank)
{
    for (int i = 0; i < rank; i++)
        if (strcmp(routes[i].text, routes[rank].text) == 0 &&
            strcmp(comm_group_host(group, i), comm_group_host(group, rank)) ==
                0)
            return false;
    return true;
}

static bool host_is_shared(const comm_group_t *group)
{
    for (int i = 1; i < comm_group_size(group); i++)
        for (int k = 0; k < i; k++)
            if (strcmp(comm_group_host(group, i), comm_group_host(group, k)) ==
                0)
                return true;
    return false;
}

static void routes_print(const comm_group_t *group, const route_t *routes)
{
    const bool ucx = strcmp(comm_group_backend(group), "ucx") == 0;

    str_print("\n");
    if (host_is_shared(group))
        str_print("ranks of one host reach each other by %s\n",
                  ucx ? "shared memory" : comm_group_backend(group));
    for (int r = 0; r < comm_group_size(group); r++)
        if (routes[r].text[0] != '\0' && route_is_new(group, routes, r))
            str_print("%s sends to other hosts by %s\n",
                      comm_group_host(group, r), routes[r].text);
}

/* UCX chooses when a rank sends its first message, so all ranks exchange
 * something before they tell rank 0 what it has chosen. */
static err_code_t routes_gather(comm_group_t *group, route_t *routes,
                                err_t *err)
{
    route_t mine = {""};
    err_code_t rc = comm_allgather(group, &mine, sizeof mine, routes, err);
    const char *route = comm_group_route(group);

    snprintf(mine.text, sizeof mine.text, "%s", route != NULL ? route : "");
    if (rc == ERR_OK)
        rc = comm_allgather(group, &mine, sizeof mine, routes, err);
    return rc;
}

err_code_t info_routes(boot_t *boot, err_t *err)
{
    const comm_config_t config = {.backend = "auto",
                                  .timeout = INFO_CHECK_PATIENCE};
    const comm_oob_t oob = {.context = boot,
                            .rank = boot_rank(boot),
                            .size = boot_size(boot),
                            .exchange = boot_exchange_call};
    comm_group_t *group = NULL;
    route_t *routes = NULL;
    err_code_t rc;

    if (oob.size == 1)
        return ERR_OK;
    rc = mem_new(route_t, (size_t)oob.size, "routes", &routes, err);
    if (rc == ERR_OK)
        rc = comm_group_open(&config, &oob, &group, err);
    if (rc == ERR_OK)
        rc = routes_gather(group, routes, err);
    if (rc == ERR_OK && oob.rank == 0)
        routes_print(group, routes);
    comm_group_close(group);
    mem_free(routes);
    return rc;
}
