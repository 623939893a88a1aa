/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/places.h"

#include <string.h>

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

static bool is(const char *part, size_t bytes, const char *text)
{
    return strlen(text) == bytes && memcmp(part, text, bytes) == 0;
}

static bool has(const char *places, const char *host, const char *where)
{
    place_t place;

    while (place_take(&places, &place))
        if (is(place.host, place.host_bytes, host) &&
            is(place.where, place.where_bytes, where))
            return true;
    return false;
}

char *train_places_add(const char *places, const comm_group_t *group,
                       const int *nodes, const char *where)
{
    const char *at = places;
    str_buf_t out = {0};
    place_t place;
    int known = 0;

    str_buf_add(&out, "%s", "");
    while (place_take(&at, &place))
        place_print(&out, &place);
    for (int r = 0; r < comm_group_size(group); r++) {
        const char *host = comm_group_host(group, r);

        if (nodes[r] < known)
            continue;
        known++;
        if (!has(places, host, where))
            str_buf_add(&out, "%s %s\n", host, where);
    }
    return out.text;
}

static bool in_group(const place_t *place, const comm_group_t *group)
{
    for (int r = 0; r < comm_group_size(group); r++)
        if (is(place->host, place->host_bytes, comm_group_host(group, r)))
            return true;
    return false;
}

char *train_places_rest(const char *places, const comm_group_t *group)
{
    str_buf_t out = {0};
    place_t place;

    str_buf_add(&out, "%s", "");
    while (place_take(&places, &place))
        if (!in_group(&place, group))
            place_print(&out, &place);
    return out.text;
}

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
