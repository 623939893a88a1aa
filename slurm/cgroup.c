/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * /proc/self/cgroup says which cgroup this process is in, and
 * /proc/self/mountinfo where cgroups are mounted. Version 1 of cgroups has a
 * separate tree for each controller. Some systems have both versions: there, a
 * controller with a tree of version 1 is not in version 2, so this tree is read
 * if it exists.
 */
#include "slurm/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

/* The next line of *rest, which is advanced; NULL: none is left. */
static char *line_next(char **rest)
{
    char *line = *rest;
    size_t length;

    if (line == NULL || *line == '\0')
        return NULL;
    length = strcspn(line, "\n");
    *rest = line[length] == '\0' ? line + length : line + length + 1;
    line[length] = '\0';
    return line;
}

/* Does the list "cpu,memory" contain [name]? */
static bool list_has(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (; *list != '\0'; list += list[strcspn(list, ",")] == ',') {
        if (strncmp(list, name, length) == 0 &&
            (list[length] == ',' || list[length] == '\0'))
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

/* Find the path of this process's cgroup for [controller] in /proc/self/cgroup,
 * whose lines are "4:memory:/path" or "0::/path". */
static bool path_find(char *text, const char *controller, slurm_cgroup_t *place)
{
    char *rest = text, *line;
    bool found = false;

    while ((line = line_next(&rest)) != NULL) {
        char *list = strchr(line, ':'), *path;

        path = list == NULL ? NULL : strchr(list + 1, ':');
        if (path == NULL)
            continue;
        *path++ = '\0';
        list++;
        if (!list_has(list, controller) && (list[0] != '\0' || found))
            continue;
        place->second = list[0] == '\0';
        snprintf(place->path, sizeof place->path, "%s", path);
        found = true;
        if (!place->second)
            return true;
    }
    return found;
}

/* Find where the tree is mounted: "31 23 0:28 /ROOT /TOP OPTIONS ... - TYPE
 * SOURCE SUPER_OPTIONS". Below TOP, paths begin after ROOT. */
static bool top_find(char *text, const char *root, const char *controller,
                     slurm_cgroup_t *place)
{
    char *rest = text, *line;
    char below[1024], top[1024], type[32], super[1024];

    while ((line = line_next(&rest)) != NULL) {
        const char *dash = strstr(line, " - ");
        const size_t whole = strlen(root);

        if (dash == NULL ||
            sscanf(line, "%*s %*s %*s %1023s %1023s", below, top) != 2 ||
            sscanf(dash, " - %31s %*s %1023s", type, super) != 2)
            continue;
        if (strcmp(type, place->second ? "cgroup2" : "cgroup") != 0 ||
            (!place->second && !list_has(super, controller)))
            continue;
        snprintf(place->top, sizeof place->top, "%.*s%s", (int)whole, root,
                 top);
        if (strcmp(below, "/") != 0 &&
            strncmp(place->path, below, strlen(below)) == 0)
            memmove(place->path, place->path + strlen(below),
                    strlen(place->path + strlen(below)) + 1);
        return true;
    }
    return false;
}

bool slurm_cgroup_find(const char *root, const char *controller,
                       slurm_cgroup_t *out)
{
    char *cgroup = str_printf("%s/proc/self/cgroup", root);
    char *mounts = str_printf("%s/proc/self/mountinfo", root);
    char *text = NULL, *table = NULL;
    bool found = false;
    size_t bytes;

    *out = (slurm_cgroup_t){0};
    if (file_read(cgroup, &text, &bytes, NULL) == ERR_OK &&
        file_read(mounts, &table, &bytes, NULL) == ERR_OK)
        found = path_find(text, controller, out) &&
                top_find(table, root, controller, out);
    free(table);
    free(text);
    free(mounts);
    free(cgroup);
    return found;
}

void slurm_cgroup_up(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash == NULL ? path : slash) = '\0';
}

void slurm_cgroup_read(const slurm_cgroup_t *cgroup, const char *path,
                       const char *name, char out[SLURM_CGROUP_VALUE])
{
    char *file = str_printf("%s%s/%s", cgroup->top, path, name), *text = NULL;
    size_t bytes;

    out[0] = '\0';
    if (file_read(file, &text, &bytes, NULL) == ERR_OK)
        snprintf(out, SLURM_CGROUP_VALUE, "%s", text);
    free(text);
    free(file);
}
