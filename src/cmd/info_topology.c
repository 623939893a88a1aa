/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every rank looks at its own affinity mask and at the NUMA nodes in /sys; rank
 * 0 prints. Ranks are together where host names are equal, as comm has it.
 */
#include "cmd/info_topology.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "comm/comm_table.h"

#define LIST_MAX 256
#define NUMA_MAX 64 /* nodes that are looked at */

typedef struct place {
    char host[ERR_HOST_MAX];
    char cpus[LIST_MAX]; /* this rank may use, as the kernel writes it */
    char numa[LIST_MAX]; /* nodes that these belong to; empty: not known */
    int32_t count;       /* of the CPUs */
} place_t;

bool info_list_has(const char *list, int cpu)
{
    while (*list != '\0') {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (end == list)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (cpu >= first && cpu <= last)
            return true;
        list = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0' && *end != '\n')
            return false;
        if (*end == '\n')
            break;
    }
    return false;
}

/* The first line of [path] into [out]; false: there is none. */
static bool line_read(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    bool read;

    if (file == NULL)
        return false;
    read = fgets(out, (int)room, file) != NULL;
    fclose(file);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

/* Append "first-last" to [list], as far as there is room. */
static void list_add(char *list, int first, int last)
{
    size_t length = strlen(list);
    const char *comma = length > 0 ? "," : "";

    if (first == last)
        snprintf(list + length, LIST_MAX - length, "%s%d", comma, first);
    else
        snprintf(list + length, LIST_MAX - length, "%s%d-%d", comma, first,
                 last);
}

static void cpus_find(place_t *place)
{
    cpu_set_t set;
    int first = -1;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return; /* more CPUs than the set has room for */
    place->count = CPU_COUNT(&set);
    for (int cpu = 0; cpu <= CPU_SETSIZE; cpu++) {
        bool in = cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set);

        if (in && first < 0)
            first = cpu;
        if (!in && first >= 0) {
            list_add(place->cpus, first, cpu - 1);
            first = -1;
        }
    }
}

static void numa_find(place_t *place)
{
    for (int node = 0; node < NUMA_MAX; node++) {
        char path[64], list[1024];
        bool here = false;

        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist",
                 node);
        if (!line_read(path, list, sizeof list))
            continue;
        for (int cpu = 0; cpu < CPU_SETSIZE && !here; cpu++)
            here = info_list_has(place->cpus, cpu) && info_list_has(list, cpu);
        if (here)
            list_add(place->numa, node, node);
    }
}

/* ---- printing ------------------------------------------------------------ */

static bool host_is_new(const place_t *places, int rank)
{
    for (int i = 0; i < rank; i++)
        if (strcmp(places[i].host, places[rank].host) == 0)
            return false;
    return true;
}

static void host_print(const place_t *places, int size, int first)
{
    int ranks = 0;

    for (int i = first; i < size; i++)
        ranks += strcmp(places[i].host, places[first].host) == 0;
    str_print("%s: %d rank%s\n", places[first].host, ranks,
              ranks == 1 ? "" : "s");
    for (int i = first; i < size; i++) {
        const place_t *one = &places[i];

        if (strcmp(one->host, places[first].host) != 0)
            continue;
        str_print("  rank %d: %d cpu%s %s, numa %s\n", i, one->count,
                  one->count == 1 ? "" : "s",
                  one->cpus[0] != '\0' ? one->cpus : "unknown",
                  one->numa[0] != '\0' ? one->numa : "unknown");
    }
}

static void places_print(const place_t *places, int size)
{
    int hosts = 0;

    for (int i = 0; i < size; i++)
        hosts += host_is_new(places, i);
    str_print("%d rank%s on %d host%s\n", size, size == 1 ? "" : "s", hosts,
              hosts == 1 ? "" : "s");
    for (int i = 0; i < size; i++)
        if (host_is_new(places, i))
            host_print(places, size, i);
}

static void table_print(const comm_table_t *table, const char *path)
{
    str_buf_t text = {0};

    comm_table_print(table, &text);
    str_print("\ntable of algorithms (%s):\n%s",
              path == NULL ? "built in" : path, text.text);
    str_buf_free(&text);
}

err_code_t info_topology(boot_t *boot, const char *table, err_t *err)
{
    int rank = boot_rank(boot), size = boot_size(boot);
    place_t mine = {.count = 0};
    comm_table_t read;
    place_t *places = NULL;
    err_code_t rc;

    if (gethostname(mine.host, sizeof mine.host - 1) != 0)
        strcpy(mine.host, "unknown");
    cpus_find(&mine);
    numa_find(&mine);
    rc = mem_new(place_t, (size_t)size, "places", &places, err);
    if (rc == ERR_OK)
        rc = boot_exchange(boot, &mine, sizeof mine, places, err);
    if (rc == ERR_OK)
        rc = comm_table_load(table, &read, err);
    if (rc == ERR_OK && rank == 0) {
        places_print(places, size);
        table_print(&read, table);
    }
    mem_free(places);
    boot_close(boot);
    return rc;
}
