/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* One place: parts of a text, which are not NUL-terminated. */
typedef struct place {
    const char *host, *where;
    size_t host_bytes, where_bytes;
} place_t;

/* Take the next place of *text, and move *text behind it. False: there is
 * none. */
static bool place_take(const char **text, place_t *out)
{
    while (**text != '\0') {
        const char *line = *text;
        const size_t bytes = strcspn(line, "\n");
        const size_t host = strcspn(line, " \n");

        *text = line + bytes + (line[bytes] == '\n');
        if (host == 0 || bytes < host + 2)
            continue;
        *out = (place_t){.host = line,
                         .host_bytes = host,
                         .where = line + host + 1,
                         .where_bytes = bytes - host - 1};
        return true;
    }
    return false;
}

static void place_print(str_buf_t *out, const place_t *place)
{
    str_buf_add(out, "%.*s %.*s\n", (int)place->host_bytes, place->host,
                (int)place->where_bytes, place->where);
}

/* ---- the hosts of a group ------------------------------------------------ */

/* A run may have thousands of places and of ranks. So the ranks are sorted by
 * their hosts, and a place is looked up among them. */
typedef struct host {
    const char *name;
    int rank;
} host_t;

static int host_compare(const void *one, const void *two)
{
    return strcmp(((const host_t *)one)->name, ((const host_t *)two)->name);
}

/* *out becomes the ranks of [group], sorted by their hosts; mem_free() it. */
static err_code_t hosts_sort(const comm_group_t *group, host_t **out,
                             err_t *err)
{
    const int size = comm_group_size(group);
    err_code_t rc =
        mem_new(host_t, (size_t)size, "places of local checkpoints", out, err);

    if (rc != ERR_OK)
        return rc;
    for (int r = 0; r < size; r++)
        (*out)[r] = (host_t){comm_group_host(group, r), r};
    qsort(*out, (size_t)size, sizeof **out, host_compare);
    return ERR_OK;
}

static int place_compare(const void *key, const void *one)
{
    const place_t *place = key;
    const char *name = ((const host_t *)one)->name;
    const int order = strncmp(place->host, name, place->host_bytes);

    return order == 0 && name[place->host_bytes] != '\0' ? -1 : order;
}

/* A rank on the host of [place]; NULL: there is none. */
static const host_t *host_find(const host_t *hosts, int size,
                               const place_t *place)
{
    return bsearch(place, hosts, (size_t)size, sizeof *hosts, place_compare);
}

/* ---- adding and removing places ------------------------------------------ */

static bool is_where(const place_t *place, const char *where)
{
    return strlen(where) == place->where_bytes &&
           memcmp(place->where, where, place->where_bytes) == 0;
}

/* Copy [places] to [out]. Set has[n] for each node n whose place is among them.
 * [has] is false at first. */
static void places_copy(const char *places, const train_places_start_t *start,
                        const host_t *hosts, bool *has, str_buf_t *out)
{
    place_t place;

    while (place_take(&places, &place)) {
        const host_t *host =
            host_find(hosts, comm_group_size(start->group), &place);

        place_print(out, &place);
        if (host != NULL && is_where(&place, start->where))
            has[start->nodes[host->rank]] = true;
    }
}

err_code_t train_places_add(const char *places,
                            const train_places_start_t *start, char **out,
                            err_t *err)
{
    const int size = comm_group_size(start->group);
    str_buf_t text = {0};
    host_t *hosts = NULL;
    bool *has = NULL;
    err_code_t rc = hosts_sort(start->group, &hosts, err);

    if (rc == ERR_OK)
        rc = mem_new(bool, (size_t)size, "places of local checkpoints", &has,
                     err);
    if (rc == ERR_OK) {
        str_buf_add(&text, "%s", "");
        places_copy(places, start, hosts, has, &text);
        for (int r = 0; r < size; r++) {
            if (!has[start->nodes[r]])
                str_buf_add(&text, "%s %s\n", comm_group_host(start->group, r),
                            start->where);
            has[start->nodes[r]] = true;
        }
        *out = text.text;
    }
    mem_free(has);
    mem_free(hosts);
    return rc;
}

err_code_t train_places_rest(const char *places, const comm_group_t *group,
                             char **out, err_t *err)
{
    const int size = comm_group_size(group);
    str_buf_t text = {0};
    host_t *hosts = NULL;
    place_t place;
    err_code_t rc = hosts_sort(group, &hosts, err);

    if (rc != ERR_OK)
        return rc;
    str_buf_add(&text, "%s", "");
    while (place_take(&places, &place))
        if (host_find(hosts, size, &place) == NULL)
            place_print(&text, &place);
    mem_free(hosts);
    *out = text.text;
    return ERR_OK;
}

/* ---- directories --------------------------------------------------------- */

/* Does [dirs] have the line [where]? */
static bool has_line(const char *dirs, const char *where, size_t bytes)
{
    for (const char *at = dirs; *at != '\0';) {
        const size_t length = strcspn(at, "\n");

        if (length == bytes && memcmp(at, where, bytes) == 0)
            return true;
        at += length + (at[length] == '\n');
    }
    return false;
}

char *train_places_dirs(const char *places, const char *where)
{
    str_buf_t out = {0};
    place_t place;

    str_buf_add(&out, "%s%s", where, where[0] != '\0' ? "\n" : "");
    while (place_take(&places, &place))
        if (!has_line(out.text, place.where, place.where_bytes))
            str_buf_add(&out, "%.*s\n", (int)place.where_bytes, place.where);
    return out.text;
}
