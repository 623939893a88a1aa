/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Where a GPU is in the machine, found in made-up trees like /sys. */
#include "dev/dev_place.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char tree[64];

/* Make the folder [path] below the tree. */
static void folder_make(const char *path)
{
    char whole[PATH_MAX];
    err_t err = ERR_INIT;

    snprintf(whole, sizeof whole, "%s/%s", tree, path);
    cr_assert_eq(file_make_dirs(whole, &err), ERR_OK, "%s", err.text);
}

static void line_write(const char *folder, const char *file, const char *line)
{
    char path[PATH_MAX];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s/%s", tree, folder, file);
    out = fopen(path, "w");
    cr_assert_not_null(out, "%s", path);
    fprintf(out, "%s\n", line);
    cr_assert_eq(fclose(out), 0);
}

/* Make a device at [path] below devices/, with a link [link] to it. */
static void device_make(const char *path, const char *link, const char *numa,
                        const char *cpus)
{
    char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX];

    snprintf(folder, sizeof folder, "devices/%s", path);
    folder_make(folder);
    if (numa != NULL)
        line_write(folder, "numa_node", numa);
    if (cpus != NULL)
        line_write(folder, "local_cpulist", cpus);
    snprintf(from, sizeof from, "%s/%s", tree, link);
    snprintf(to, sizeof to, "%s/devices/%s", tree, path);
    cr_assert_eq(symlink(to, from), 0, "%s", from);
}

static void tree_make(void)
{
    snprintf(tree, sizeof tree, "/tmp/cddp-place-XXXXXX");
    cr_assert_not_null(mkdtemp(tree));
    setenv("CDDP_SYSFS", tree, 1);
}

static void tree_remove(void)
{
    cr_expect_eq(file_remove_tree(tree, NULL), ERR_OK);
}

TestSuite(place, .init = tree_make, .fini = tree_remove);

/* A machine with two sockets. The first has a GPU and a network card below one
 * switch, and a card at another port. The second has one card. */
static void two_sockets(void)
{
    folder_make("bus/pci/devices");
    folder_make("class/infiniband/mlx5_0");
    folder_make("class/infiniband/mlx5_1");
    folder_make("class/infiniband/mlx5_2");
    device_make("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0",
                "bus/pci/devices/0000:17:00.0", "0", "0-31,64-95");
    device_make("pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.0",
                "class/infiniband/mlx5_0/device", "0", NULL);
    device_make("pci0000:15/0000:15:02.0/0000:21:00.0",
                "class/infiniband/mlx5_1/device", "0", NULL);
    device_make("pci0000:a1/0000:a1:01.0/0000:a2:00.0",
                "class/infiniband/mlx5_2/device", "1", NULL);
}

Test(place, cards_by_nearness)
{
    dev_place_t place;

    two_sockets();
    dev_place_find("0000:17:00.0", &place);
    cr_expect_eq(place.numa, 0);
    cr_expect_str_eq(place.cpus, "0-31,64-95");
    cr_assert_eq(place.nic_count, 3);
    cr_expect_str_eq(place.nics[0].name, "mlx5_0");
    cr_expect_eq(place.nics[0].near, DEV_NEAR_SWITCH);
    cr_expect_str_eq(place.nics[1].name, "mlx5_1");
    cr_expect_eq(place.nics[1].near, DEV_NEAR_NUMA);
    cr_expect_str_eq(place.nics[2].name, "mlx5_2");
    cr_expect_eq(place.nics[2].near, DEV_NEAR_MACHINE);
    cr_expect_eq(place.nics[2].numa, 1);
    cr_expect_not(place.peermem);
    folder_make("module/nvidia_peermem");
    dev_place_find("0000:17:00.0", &place);
    cr_expect(place.peermem);
}

/* On machines with one NUMA node, numa_node is -1. */
Test(place, one_numa_node)
{
    dev_place_t place;

    folder_make("bus/pci/devices");
    device_make("pci0000:00/0000:00:01.0/0000:01:00.0",
                "bus/pci/devices/0000:01:00.0", "-1", "0-7");
    dev_place_find("0000:01:00.0", &place);
    cr_expect_eq(place.numa, -1);
    cr_expect_str_eq(place.cpus, "0-7");
    cr_expect_eq(place.nic_count, 0);
}

Test(place, nothing_is_known)
{
    dev_place_t place;

    dev_place_find("0000:01:00.0", &place);
    cr_expect_eq(place.numa, -1);
    cr_expect_str_empty(place.cpus);
    cr_expect_eq(place.nic_count, 0);
    cr_expect_not(place.peermem);
}
