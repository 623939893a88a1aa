/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev_place.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *root(void)
{
    const char *other = getenv("CDDP_SYSFS");

    return other != NULL && other[0] != '\0' ? other : "/sys";
}

/* Read the first line of the file [folder]/[file] below root(). "": there is
 * none. */
static void line_read(const char *folder, const char *file, char *out,
                      size_t room)
{
    char path[PATH_MAX];
    FILE *stream;

    out[0] = '\0';
    if (snprintf(path, sizeof path, "%s/%s/%s", root(), folder, file) >=
        (int)sizeof path)
        return;
    stream = fopen(path, "re");
    if (stream == NULL)
        return;
    if (fgets(out, (int)room, stream) == NULL)
        out[0] = '\0';
    fclose(stream);
    out[strcspn(out, "\n")] = '\0';
}

static int numa_read(const char *folder)
{
    char text[16];
    int node = -1;

    line_read(folder, "numa_node", text, sizeof text);
    return sscanf(text, "%d", &node) == 1 && node >= 0 ? node : -1;
}

/* Return the path of a device below /sys/devices: it names the bridges between
 * the device and the root complex. The caller frees it. NULL: not known. */
static char *path_find(const char *folder)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", root(), folder) >=
        (int)sizeof path)
        return NULL;
    return realpath(path, NULL);
}

/* Do the devices with the paths [a] and [b] share a PCI switch? A path is
 * .../pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0: root complex, root
 * port, bridges, device. */
static bool switch_shared(const char *a, const char *b)
{
    const char *at = a != NULL ? strstr(a, "/pci") : NULL;
    int shared = 0;

    if (at == NULL || b == NULL)
        return false;
    for (const char *end = at; end != NULL; end = strchr(end + 1, '/')) {
        const size_t length = (size_t)(end - a);

        if (end > at && strncmp(a, b, length) == 0 && b[length] == '/')
            shared++;
    }
    /* They have the root complex and the root port in common. */
    return shared >= 2;
}

static void nic_add(const char *name, const char *gpu, dev_place_t *place)
{
    dev_nic_t *nic = &place->nics[place->nic_count];
    char folder[128];
    char *path;

    if (place->nic_count >= DEV_PLACE_NICS)
        return;
    snprintf(folder, sizeof folder, "class/infiniband/%.31s/device", name);
    path = path_find(folder);
    *nic = (dev_nic_t){.numa = numa_read(folder), .near = DEV_NEAR_MACHINE};
    snprintf(nic->name, sizeof nic->name, "%.31s", name);
    if (switch_shared(gpu, path))
        nic->near = DEV_NEAR_SWITCH;
    else if (nic->numa >= 0 && nic->numa == place->numa)
        nic->near = DEV_NEAR_NUMA;
    place->nic_count++;
    free(path);
}

static void nics_find(const char *gpu, dev_place_t *place)
{
    char path[PATH_MAX];
    struct dirent **names = NULL;
    int count;

    if (snprintf(path, sizeof path, "%s/class/infiniband", root()) >=
        (int)sizeof path)
        return;
    count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            nic_add(names[i]->d_name, gpu, place);
        free(names[i]);
    }
    free(names);
}

void dev_place_find(const char *bus, dev_place_t *out)
{
    dev_place_t place = {.numa = -1};
    char folder[64], path[PATH_MAX];
    char *gpu;

    snprintf(folder, sizeof folder, "bus/pci/devices/%.20s", bus);
    place.numa = numa_read(folder);
    line_read(folder, "local_cpulist", place.cpus, sizeof place.cpus);
    gpu = path_find(folder);
    nics_find(gpu, &place);
    free(gpu);
    snprintf(path, sizeof path, "%.200s/module/nvidia_peermem", root());
    place.peermem = access(path, F_OK) == 0;
    *out = place;
}
