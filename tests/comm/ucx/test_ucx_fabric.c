/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which network a group uses, and which transport UCX has chosen, as pure
 * functions. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/ucx/ucx_fabric.h"
#include "comm/ucx/ucx_route.h"

#define IP(a, b, c, d)                                                \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | \
     (uint32_t)(d))
#define NET24 0xffffff00u
#define NET16 0xffff0000u

/* Two machines with two ranks each: ranks 0 and 1, and ranks 2 and 3. */
static void machines(ucx_fabric_t fabrics[4])
{
    memset(fabrics, 0, 4 * sizeof *fabrics);
    for (int i = 0; i < 4; i++) {
        fabrics[i].network = fabrics[i].memory = 1 + (uint64_t)i / 2;
    }
}

static void iface(ucx_fabric_t *fabric, const char *name, uint32_t address,
                  uint32_t mask, int64_t speed)
{
    ucx_iface_t *iface = &fabric->ifaces[fabric->count++];

    strcpy(iface->name, name);
    iface->address = address;
    iface->mask = mask;
    iface->speed = speed;
}

static void iface_all(ucx_fabric_t fabrics[4], const char *name,
                      uint32_t network, uint32_t mask, int64_t speed)
{
    for (int i = 0; i < 4; i++)
        iface(&fabrics[i], name, network + 1 + (uint32_t)i / 2, mask, speed);
}

static void expect_iface(const ucx_fabric_t fabrics[4], const char *name)
{
    for (int rank = 0; rank < 4; rank++) {
        int iface = -1;

        cr_assert_eq(ucx_fabric_reach(fabrics, 4, rank, false, &iface),
                     UCX_REACH_IFACE);
        cr_expect_str_eq(fabrics[rank].ifaces[iface].name, name, "rank %d",
                         rank);
    }
}

static void expect_reach(const ucx_fabric_t fabrics[4], bool mates,
                         ucx_reach_t reach)
{
    int iface = -1;

    for (int rank = 0; rank < 4; rank++)
        cr_expect_eq(ucx_fabric_reach(fabrics, 4, rank, mates, &iface), reach,
                     "rank %d", rank);
    cr_expect_eq(iface, -1);
}

Test(ucx_fabric, who_shares_memory_needs_no_network)
{
    ucx_fabric_t fabrics[4];

    machines(fabrics);
    for (int i = 0; i < 4; i++)
        fabrics[i].network = fabrics[i].memory = 1;
    iface_all(fabrics, "eth0", IP(10, 0, 0, 0), NET24, 1000);
    expect_reach(fabrics, true, UCX_REACH_MEMORY);
    expect_reach(fabrics, false, UCX_REACH_LOOPBACK);
    fabrics[2].own_devices = true;
    expect_reach(fabrics, true, UCX_REACH_MEMORY);
    expect_reach(fabrics, false, UCX_REACH_ANY);
    fabrics[2].own_devices = false;
    fabrics[1].memory = 2; /* as in containers of one pod */
    expect_reach(fabrics, true, UCX_REACH_LOOPBACK);
    fabrics[1].memory = 1;
    fabrics[3].own_tls = true;
    expect_reach(fabrics, true, UCX_REACH_LOOPBACK);
}

Test(ucx_fabric, the_fastest_network_of_all)
{
    ucx_fabric_t fabrics[4];

    machines(fabrics);
    iface_all(fabrics, "docker0", IP(172, 17, 0, 0), NET16, 0);
    /* each machine has this address on its own bridge */
    for (int i = 0; i < 4; i++)
        fabrics[i].ifaces[0].address = IP(172, 17, 0, 1);
    iface_all(fabrics, "eth0", IP(10, 0, 0, 0), NET24, 1000);
    expect_iface(fabrics, "eth0");
    iface_all(fabrics, "ib0", IP(10, 1, 0, 0), NET24, 100000);
    expect_iface(fabrics, "ib0");
    iface(&fabrics[0], "fast0", IP(10, 2, 0, 1), NET24, 400000);
    iface(&fabrics[1], "fast0", IP(10, 2, 0, 1), NET24, 400000);
    expect_iface(fabrics, "ib0");
    /* the slowest interface of a network counts */
    fabrics[3].ifaces[2].speed = 100;
    expect_iface(fabrics, "eth0");
}

Test(ucx_fabric, names_may_differ_and_order_too)
{
    ucx_fabric_t fabrics[4];
    int found = -1;

    machines(fabrics);
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            iface(&fabrics[i], "eno1", IP(10, 9, 0, i / 2 + 1), NET24, 0);
        iface(&fabrics[i], i < 2 ? "ens5" : "eth7", IP(10, 8, 0, i / 2 + 1),
              NET24, 0);
        if (i >= 2)
            iface(&fabrics[i], "eth1", IP(10, 9, 0, i / 2 + 1), NET24, 0);
    }
    cr_assert_eq(ucx_fabric_reach(fabrics, 4, 0, false, &found),
                 UCX_REACH_IFACE);
    cr_expect_str_eq(fabrics[0].ifaces[found].name, "ens5");
    cr_assert_eq(ucx_fabric_reach(fabrics, 4, 3, false, &found),
                 UCX_REACH_IFACE);
    cr_expect_str_eq(fabrics[3].ifaces[found].name, "eth7");
}

Test(ucx_fabric, without_a_common_network_ucx_chooses)
{
    ucx_fabric_t fabrics[4];

    machines(fabrics);
    expect_reach(fabrics, false, UCX_REACH_ANY);
    for (int i = 0; i < 4; i++) /* each rack has a network of its own */
        iface(&fabrics[i], "eth0", IP(10, 0, i / 2, 1), NET24, 1000);
    expect_reach(fabrics, false, UCX_REACH_ANY);
}

/* ---- what UCX prints of an endpoint -------------------------------------- */

static void expect_route(const char *line, const char *route)
{
    char found[UCX_ROUTE] = "?", text[512];

    snprintf(
        text, sizeof text,
        "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n%s\n",
        line);
    cr_expect_eq(ucx_route_read(text, found), route[0] != '\0', "%s", line);
    cr_expect_str_eq(found, route);
}

Test(ucx_route, is_the_first_lane)
{
    expect_route("#  lane[0]:  2:tcp/eth0.0 md[1] -> md[1]/tcp/sysdev[255] am\n"
                 "#  lane[1]:  5:rc_mlx5/mlx5_0:1.0 md[2] -> md[2]/ib rma_bw#0",
                 "tcp:eth0");
    expect_route("#  lane[0]: 15:rc_mlx5/mlx5_0:1.0 md[3] -> md[3]/ib am",
                 "rc_mlx5:mlx5_0:1");
    expect_route("#  lane[0]:  2:tcp/eth0.100.0 md[1]", "tcp:eth0.100");
    expect_route("#  lane[0]:  2:tcp/eth0 md[1]", "tcp:eth0");
}

Test(ucx_route, may_be_unknown)
{
    expect_route("#   tag_send: 0..<egr/short>", "");
    expect_route("#  lane[0]: none", "");
    expect_route("#  lane[0]:  2:tcp", "");
}
