/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_fabric.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/comm.h"

/* ---- this process -------------------------------------------------------- */

/* Read the first line of the file [path], without its end. */
static bool line_read(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(out, (int)room, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

/* A hash of the machine and of the namespaces in [names] (NULL-terminated). */
static uint64_t namespaces_hash(const char *const *names)
{
    struct {
        char machine[256];
        uint64_t inodes[2];
    } place;
    char path[64];
    struct stat info;

    memset(&place, 0, sizeof place);
    if (!line_read("/proc/sys/kernel/random/boot_id", place.machine,
                   sizeof place.machine))
        (void)gethostname(place.machine, sizeof place.machine - 1);
    for (int i = 0; names[i] != NULL; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (stat(path, &info) == 0)
            place.inodes[i] = (uint64_t)info.st_ino;
    }
    return hash_bytes(&place, sizeof place);
}

/* The speed of interface [name] in Mbit/s; 0: unknown. */
static int64_t speed_of(const char *name)
{
    char path[64], line[32];

    snprintf(path, sizeof path, "/sys/class/net/%.*s/speed", UCX_IFACE_NAME,
             name);
    if (!line_read(path, line, sizeof line))
        return 0;
    return strtoll(line, NULL, 10) > 0 ? strtoll(line, NULL, 10) : 0;
}

/* Append [one] if it is up, has an IPv4 address and is no loopback. */
static void iface_add(const struct ifaddrs *one, ucx_fabric_t *out)
{
    const struct sockaddr_in *address = (const void *)one->ifa_addr;
    const struct sockaddr_in *mask = (const void *)one->ifa_netmask;
    ucx_iface_t *iface = &out->ifaces[out->count];

    if (address == NULL || mask == NULL || address->sin_family != AF_INET ||
        (one->ifa_flags & IFF_LOOPBACK) != 0 ||
        (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_RUNNING) == 0)
        return;
    if (out->count == UCX_IFACES) {
        out->more = true;
        return;
    }
    snprintf(iface->name, sizeof iface->name, "%s", one->ifa_name);
    /* The alias eth0:1 belongs to eth0. */
    iface->name[strcspn(iface->name, ":")] = '\0';
    iface->address = ntohl(address->sin_addr.s_addr);
    iface->mask = ntohl(mask->sin_addr.s_addr);
    iface->speed = speed_of(iface->name);
    out->count++;
}

void ucx_fabric_find(ucx_fabric_t *out)
{
    static const char *const network[] = {"net", NULL};
    static const char *const memory[] = {"ipc", "pid", NULL};
    const char *gate = getenv("CDDP_NET_GATE");
    struct ifaddrs *list = NULL;

    memset(out, 0, sizeof *out);
    out->network = namespaces_hash(network);
    out->memory = namespaces_hash(memory);
    out->own_tls = getenv("UCX_TLS") != NULL;
    out->own_devices = getenv("UCX_NET_DEVICES") != NULL;
    out->open = gate != NULL && strcmp(gate, "off") == 0;
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *one = list; one != NULL; one = one->ifa_next)
        iface_add(one, out);
    freeifaddrs(list);
}

/* ---- the group ----------------------------------------------------------- */

/* Index of the interface of [fabric] in network [net] with mask [mask]; -1:
 * none. */
static int iface_in(const ucx_fabric_t *fabric, uint32_t net, uint32_t mask)
{
    for (int i = 0; i < fabric->count; i++)
        if (fabric->ifaces[i].mask == mask &&
            (fabric->ifaces[i].address & mask) == net)
            return i;
    return -1;
}

typedef struct owner { /* of an address */
    uint32_t address;
    uint64_t network; /* ucx_fabric_t.network */
} owner_t;

static int owners_compare(const void *a, const void *b)
{
    const uint32_t one = ((const owner_t *)a)->address;
    const uint32_t other = ((const owner_t *)b)->address;

    return (one > other) - (one < other);
}

/* Return whether each address is in one network namespace only. Sorts
 * [owners]. */
static bool owners_are_unique(owner_t *owners, int size)
{
    qsort(owners, (size_t)size, sizeof *owners, owners_compare);
    for (int i = 1; i < size; i++)
        if (owners[i].address == owners[i - 1].address &&
            owners[i].network != owners[i - 1].network)
            return false;
    return true;
}

/* Return whether all ranks have an interface in the network of [iface], with
 * unique addresses. *speed is set to the speed of the slowest interface.
 * [owners] is scratch of [size] elements. */
static bool network_shared(const ucx_fabric_t *fabrics, int size,
                           const ucx_iface_t *iface, owner_t *owners,
                           int64_t *speed)
{
    *speed = iface->speed;
    for (int i = 0; i < size; i++) {
        const int found =
            iface_in(&fabrics[i], iface->address & iface->mask, iface->mask);
        const ucx_iface_t *there = &fabrics[i].ifaces[found < 0 ? 0 : found];

        if (found < 0)
            return false;
        if (there->speed < *speed)
            *speed = there->speed;
        owners[i] = (owner_t){there->address, fabrics[i].network};
    }
    return owners_are_unique(owners, size);
}

/* The index of this rank's interface in the best network; -1: there is none.
 * All ranks choose among the networks of rank 0, so they make the same choice.
 */
static int iface_choose(const ucx_fabric_t *fabrics, int size, int rank)
{
    owner_t *owners = NULL;
    const ucx_iface_t *best = NULL;
    int64_t most = 0;

    (void)mem_new(owner_t, (size_t)size, "addresses", &owners, NULL);
    for (int i = 0; owners != NULL && i < fabrics[0].count; i++) {
        const ucx_iface_t *iface = &fabrics[0].ifaces[i];
        int64_t speed;

        if (!network_shared(fabrics, size, iface, owners, &speed))
            continue;
        if (best == NULL || speed > most ||
            (speed == most &&
             (iface->address & iface->mask) < (best->address & best->mask))) {
            best = iface;
            most = speed;
        }
    }
    mem_free(owners);
    return best == NULL ? -1
                        : iface_in(&fabrics[rank], best->address & best->mask,
                                   best->mask);
}

ucx_reach_t ucx_fabric_reach(const ucx_fabric_t *fabrics, int size, int rank,
                             bool local, int *iface)
{
    bool memory = local, network = true, own_tls = false, own_devices = false;

    for (int i = 0; i < size; i++) {
        memory = memory && fabrics[i].memory == fabrics[0].memory;
        network = network && fabrics[i].network == fabrics[0].network;
        own_tls = own_tls || fabrics[i].own_tls;
        own_devices = own_devices || fabrics[i].own_devices;
    }
    if (memory && !own_tls)
        return UCX_REACH_MEMORY;
    if (own_devices)
        return UCX_REACH_ANY;
    if (network)
        return UCX_REACH_LOOPBACK;
    *iface = iface_choose(fabrics, size, rank);
    return *iface < 0 ? UCX_REACH_ANY : UCX_REACH_IFACE;
}

/* ---- devices ------------------------------------------------------------- */

/* The folder that lists RDMA devices. */
static void rdma_folder(char *out, size_t room)
{
    const char *other = getenv("CDDP_SYSFS");

    snprintf(out, room, "%.300s/class/infiniband",
             other != NULL && other[0] != '\0' ? other : "/sys");
}

/* Does the file [what] of a port contain the word [word]? */
static bool port_has(const char *folder, const char *name, int port,
                     const char *what, const char *word)
{
    char path[512], line[64];

    snprintf(path, sizeof path, "%s/%.64s/ports/%d/%s", folder, name, port,
             what);
    return line_read(path, line, sizeof line) && strstr(line, word) != NULL;
}

/* Append the active ports of the RDMA device [name] in [folder]. [only]: the
 * link layer that a port must have; NULL: any. */
static void ports_add(const char *folder, const char *name, const char *only,
                      char *out, size_t room)
{
    size_t used;

    for (int port = 1; port <= 8; port++) {
        used = strlen(out);
        if (port_has(folder, name, port, "state", "ACTIVE") &&
            (only == NULL ||
             port_has(folder, name, port, "link_layer", only)) &&
            used + strlen(name) + 3 < room)
            snprintf(out + used, room - used, ",%s:%d", name, port);
    }
}

/* Append the active ports of all RDMA devices, each with a comma before it.
 * [only]: see ports_add. */
static void devices_add(const char *only, char *out, size_t room)
{
    const struct dirent *entry;
    char folder[400];
    DIR *list;

    rdma_folder(folder, sizeof folder);
    list = opendir(folder);
    while (list != NULL && (entry = readdir(list)) != NULL)
        if (entry->d_name[0] != '.')
            ports_add(folder, entry->d_name, only, out, room);
    if (list != NULL)
        closedir(list);
}

void ucx_fabric_devices(const ucx_iface_t *iface, char *out, size_t room)
{
    snprintf(out, room, "%s", iface->name);
    devices_add(NULL, out, room);
}

void comm_infiniband_ports(char *out, size_t room)
{
    char ports[UCX_DEVICES] = "";

    devices_add("InfiniBand", ports, sizeof ports);
    snprintf(out, room, "%s", ports[0] == ',' ? ports + 1 : ports);
}
