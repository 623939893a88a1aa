/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The lines of cddp-info on a host, and on Slurm's plugins; and a table of
 * algorithms that one rank cannot read. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "cmd/info_build.h"
#include "cmd/info_host.h"
#include "cmd/info_topology.h"

/* As UCX 1.13 prints it on a host with an InfiniBand card. */
static const char printed[] =
    "#\n# UCP context\n#\n"
    "#     component 0  :  self\n"
    "#            md 0  :  component 0  self \n"
    "#\n"
    "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
    "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n"
    "#      resource 2  :  md 4  dev 2  flags -a rc_mlx5/mlx5_0:1\n"
    "#      resource 3  :  md 2  dev 3  flags -- sysv/memory\n"
    "#      resource 4  :  md 5  dev 4  flags -- cuda_ipc/cuda\n"
    "#      resource 5  :  md 4  dev 3  flags -- cma/memory\n"
    "#\n"
    "# memory: 1.50MB, file descriptors: 5\n";

Test(info_host, transports)
{
    str_buf_t out = {0};

    cr_expect(info_host_transports(printed, &out));
    cr_expect_str_eq(out.text, "ucx: on this host sysv cuda_ipc cma; to others "
                               "tcp/eth0 rc_mlx5/mlx5_0:1");
    str_buf_free(&out);
}

Test(info_host, no_transports)
{
    static const char *const texts[] = {
        "", "resource ", "#  resource 0  :  md 0  dev 0  flags -- self/memory0",
        "resource 1 : md 1 dev 1 flags -- none", "\n\nresource\n"};
    str_buf_t out = {0};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect(!info_host_transports(texts[i], &out), "%s", texts[i]);
    cr_expect_null(out.text);
}

/* A simulated machine: its numbers do not depend on where the test runs. */
Test(info_host, lines)
{
    hwloc_topology_t topology;
    char out[1024];

    cr_assert_eq(hwloc_topology_init(&topology), 0);
    cr_assert_eq(hwloc_topology_set_synthetic(
                     topology, "package:2 [numa(memory=8589934592)] "
                               "l3:2(size=33554432) l2:2(size=1048576) core:1 "
                               "pu:1"),
                 0);
    cr_assert_eq(hwloc_topology_load(topology), 0);
    info_host(topology, out, sizeof out);
    hwloc_topology_destroy(topology);
    cr_expect_not_null(strstr(out, "  2 sockets, 8 cores, 8 x L2 1.0 MiB, "
                                   "4 x L3 32.0 MiB, memory "),
                       "%s", out);
    cr_expect_not_null(strstr(out, "\n  ucx: "), "%s", out);
    info_host(NULL, out, sizeof out);
    cr_expect_not_null(strstr(out, "  memory "), "%s", out);
}

/* A rank of cddp-info --topology TABLE. */
typedef struct member {
    boot_t *boot;
    const char *table;
    bool speaker;
    err_t err;
} member_t;

static void *member_main(void *argument)
{
    member_t *member = argument;

    (void)info_topology(member->boot, member->table, &member->speaker,
                        &member->err);
    return NULL;
}

/* Only rank 1 has no table. Rank 0 does not wait for it, and gets its error. */
Test(info_topology, one_rank_cannot_read_the_table, .timeout = 120)
{
    const boot_config_t config = {.timeout = 60.0};
    member_t members[2] = {{.speaker = true},
                           {.speaker = true, .table = "/nowhere/table"}};
    pthread_t threads[2];
    boot_t *boots[2];
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_open(2, &config, boots, &err), ERR_OK);
    for (int r = 0; r < 2; r++) {
        members[r].boot = boots[r];
        cr_assert_eq(
            thread_start("rank", member_main, &members[r], &threads[r], &err),
            ERR_OK);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < 2; r++) {
        cr_expect_eq(members[r].err.code, ERR_IO, "%s", members[r].err.text);
        cr_expect_not_null(strstr(members[r].err.text, "rank 1 on "), "%s",
                           members[r].err.text);
        cr_expect_not_null(strstr(members[r].err.text, "/nowhere/table"));
        cr_expect_eq(members[r].speaker, r == 1);
    }
}

Test(info_build, plugins)
{
    static const struct {
        const char *said, *names;
    } rows[] = {
        {"MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n"
         "specific pmix plugin versions available: pmix_v3,pmix_v4\n",
         "none pmi2 pmix pmix_v3 pmix_v4"},
        {"srun: MPI types are...\nsrun: none\nsrun: pmix_v2\n", "none pmix_v2"},
        {"MPI plugin types are...", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t out = {0};

        info_build_plugins(rows[i].said, &out);
        if (rows[i].names == NULL)
            cr_expect_null(out.text);
        else
            cr_expect_str_eq(out.text, rows[i].names);
        str_buf_free(&out);
    }
}
