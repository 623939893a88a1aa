/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Prints the transports that UCX can choose from (info_routes.h prints what it
 * has chosen). UCX is opened as for a run, with UCX_TLS and UCX_NET_DEVICES of
 * the environment. It has no function that lists its transports, so we read
 * what it prints.
 */
#include "cmd/info_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "slurm/step_memory.h"

/* ---- hardware ------------------------------------------------------------ */

static void count_add(hwloc_topology_t topology, hwloc_obj_type_t type,
                      const char *name, str_buf_t *out)
{
    const int count = hwloc_get_nbobjs_by_type(topology, type);

    if (count > 0)
        str_buf_add(out, "%s%d %s%s", out->length > 2 ? ", " : "", count, name,
                    count == 1 ? "" : "s");
}

static void cache_add(hwloc_topology_t topology, hwloc_obj_type_t type,
                      const char *name, str_buf_t *out)
{
    const hwloc_obj_t one = hwloc_get_obj_by_type(topology, type, 0);
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    char bytes[32];

    if (one != NULL && count > 0)
        str_buf_add(out, "%s%d x %s %s", out->length > 2 ? ", " : "", count,
                    name,
                    str_bytes(one->attr->cache.size, bytes, sizeof bytes));
}

static const char *environment(const char *name)
{
    return getenv(name);
}

/* The memory of the host, and less if its ranks may not use all of it. */
static void memory_add(str_buf_t *out)
{
    const slurm_memory_t limit = slurm_memory_limit(environment, "");
    const uint64_t total =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char bytes[32];

    str_buf_add(out, "%smemory %s", out->length > 2 ? ", " : "",
                str_bytes(total, bytes, sizeof bytes));
    if (limit.bytes < total)
        str_buf_add(out, ", limit %s (%s)",
                    str_bytes(limit.bytes, bytes, sizeof bytes), limit.source);
    str_buf_add(out, "\n");
}

/* ---- transports ---------------------------------------------------------- */

/* Does [device] reach only this host? */
static bool stays_here(const char *device)
{
    return strncmp(device, "memory", 6) == 0 || strcmp(device, "cuda") == 0;
}

/* Append the resources that stay on the host ([here]), without their devices,
 * or all others. Lines look like
 * "#  resource 3 : md 2 dev 2 flags -- posix/memory". */
static int resources_add(const char *text, bool here, str_buf_t *out)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, "resource ")) != NULL; at++) {
        char name[128], *device;

        if (sscanf(at, "resource %*s : md %*s dev %*s flags %*s %127s", name) !=
                1 ||
            strncmp(name, "self/", 5) == 0 ||
            (device = strchr(name, '/')) == NULL ||
            stays_here(device + 1) != here)
            continue;
        if (here)
            *device = '\0';
        str_buf_add(out, " %s", name);
        count++;
    }
    return count;
}

bool info_host_transports(const char *text, str_buf_t *out)
{
    str_buf_t here = {0}, others = {0};
    const int count =
        resources_add(text, true, &here) + resources_add(text, false, &others);

    if (count > 0)
        str_buf_add(out, "ucx: on this host%s; to others%s",
                    here.length > 0 ? here.text : " none",
                    others.length > 0 ? others.text : " none");
    str_buf_free(&here);
    str_buf_free(&others);
    return count > 0;
}

/* What UCX prints about its resources; NULL: it cannot start. The caller frees
 * it with free(). */
static char *ucx_text(void)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features =
                                     UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
    ucp_context_h context;
    char *text = NULL;
    size_t bytes;
    FILE *file;

    if (ucp_init(&params, NULL, &context) != UCS_OK)
        return NULL;
    file = open_memstream(&text, &bytes);
    if (file != NULL) {
        ucp_context_print_info(context, file);
        fclose(file);
    }
    ucp_cleanup(context);
    return text;
}

static void transports_add(str_buf_t *out)
{
    char *text = ucx_text();

    str_buf_add(out, "  ");
    if (text == NULL || !info_host_transports(text, out))
        str_buf_add(out, "ucx: transports unknown");
    str_buf_add(out, "\n");
    free(text);
}

void info_host(hwloc_topology_t topology, char *out, size_t room)
{
    str_buf_t text = {0};

    str_buf_add(&text, "  ");
    if (topology != NULL) {
        count_add(topology, HWLOC_OBJ_PACKAGE, "socket", &text);
        count_add(topology, HWLOC_OBJ_CORE, "core", &text);
        cache_add(topology, HWLOC_OBJ_L2CACHE, "L2", &text);
        cache_add(topology, HWLOC_OBJ_L3CACHE, "L3", &text);
    }
    memory_add(&text);
    transports_add(&text);
    snprintf(out, room, "%s", text.text);
    str_buf_free(&text);
}
