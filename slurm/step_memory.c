/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * /proc/self/cgroup says which cgroup this process is in, and
 * /proc/self/mountinfo where cgroups are mounted. Every cgroup above limits the
 * process, too. Version 1 of cgroups has a separate tree for memory. This tree
 * is used if it exists: a system that has both versions limits memory by
 * version 1.
 *
 * Slurm makes a cgroup "step_0" for each step, and below it cgroups for the
 * tasks. In version 2 the counter of a cgroup includes the kills in all cgroups
 * below it; in version 1 it does not.
 */
#include "slurm/step_memory.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* Version 1 says "no limit" by the largest number of whole pages. */
#define NO_LIMIT ((uint64_t)1 << 60)

/* Levels of cgroups below a step that may hold its tasks: step/user/task. */
#define DEPTH 3

/* The cgroup of this process. */
typedef struct place {
    bool second;     /* version 2 */
    char top[4096];  /* where the tree is mounted */
    char path[4096]; /* of the cgroup itself, below [top] */
} place_t;

/* ---- finding the cgroup -------------------------------------------------- */

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

/* Find the path of this process's cgroup for memory in /proc/self/cgroup, whose
 * lines are "4:memory:/path" or "0::/path". */
static bool path_find(char *text, place_t *place)
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
        if (!list_has(list, "memory") && (list[0] != '\0' || found))
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
static bool top_find(char *text, const char *root, place_t *place)
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
            (!place->second && !list_has(super, "memory")))
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

static bool place_find(const char *root, place_t *place)
{
    char *cgroup = str_printf("%s/proc/self/cgroup", root);
    char *mounts = str_printf("%s/proc/self/mountinfo", root);
    char *text = NULL, *table = NULL;
    bool found = false;
    size_t bytes;

    *place = (place_t){0};
    if (file_read(cgroup, &text, &bytes, NULL) == ERR_OK &&
        file_read(mounts, &table, &bytes, NULL) == ERR_OK)
        found = path_find(text, place) && top_find(table, root, place);
    free(table);
    free(text);
    free(mounts);
    free(cgroup);
    return found;
}

/* ---- limits and kills ---------------------------------------------------- */

#define VALUE_MAX 1024 /* bytes of a file with limits or counters */

/* Read the file [name] of the cgroup [path]; "": there is none. */
static void value_read(const place_t *place, const char *path, const char *name,
                       char out[VALUE_MAX])
{
    char *file = str_printf("%s%s/%s", place->top, path, name), *text = NULL;
    size_t bytes;

    out[0] = '\0';
    if (file_read(file, &text, &bytes, NULL) == ERR_OK)
        snprintf(out, VALUE_MAX, "%s", text);
    free(text);
    free(file);
}

/* The limit of the cgroup [path]; UINT64_MAX: none. */
static uint64_t limit_read(const place_t *place, const char *path)
{
    char text[VALUE_MAX];
    uint64_t limit = UINT64_MAX;

    value_read(place, path,
               place->second ? "memory.max" : "memory.limit_in_bytes", text);
    if (text[0] >= '0' && text[0] <= '9')
        limit = strtoull(text, NULL, 10);
    return limit < NO_LIMIT ? limit : UINT64_MAX;
}

/* Number of kills in the cgroup [path] alone (version 1), or including all
 * cgroups below it (version 2); -1: unknown. */
static int64_t kills_read(const place_t *place, const char *path)
{
    static const char key[] = "oom_kill ";
    char text[VALUE_MAX];
    const char *at;

    value_read(place, path,
               place->second ? "memory.events" : "memory.oom_control", text);
    at = strstr(text, key);
    return at == NULL ? -1 : (int64_t)strtoll(at + strlen(key), NULL, 10);
}

/* Number of kills in the cgroup [path] and in those below it. */
static int64_t kills_sum(const place_t *place, const char *path, int depth)
{
    int64_t sum = kills_read(place, path);
    char *name = str_printf("%s%s", place->top, path);
    DIR *directory = place->second || depth == 0 ? NULL : opendir(name);
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char *below = str_printf("%s/%s", path, entry->d_name);
        const int64_t more = entry->d_name[0] == '.' || entry->d_type != DT_DIR
                                 ? -1
                                 : kills_sum(place, below, depth - 1);

        if (more > 0)
            sum = sum < 0 ? more : sum + more;
        free(below);
    }
    if (directory != NULL)
        closedir(directory);
    free(name);
    return sum;
}

/* Cut [path] to the cgroup above it; "": the top. */
static void path_up(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash == NULL ? path : slash) = '\0';
}

/* ---- for users ----------------------------------------------------------- */

/* Is the cgroup [path] that of a whole step? */
static bool is_step(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strncmp(slash, "/step_", 6) == 0;
}

int64_t slurm_memory_kills(const char *root)
{
    place_t place;
    char step[sizeof place.path];

    if (!place_find(root, &place))
        return -1;
    snprintf(step, sizeof step, "%s", place.path);
    while (step[0] != '\0' && !is_step(step))
        path_up(step);
    return step[0] != '\0' ? kills_sum(&place, step, DEPTH)
                           : kills_sum(&place, place.path, 0);
}

static void smaller(slurm_memory_t *limit, uint64_t bytes, const char *source)
{
    if (bytes > 0 && bytes < limit->bytes)
        *limit = (slurm_memory_t){.bytes = bytes, .source = source};
}

/* The number in the variable [name], in MiB; 0: it is unset, or no number. */
static uint64_t megabytes(const char *(*lookup)(const char *name),
                          const char *name)
{
    const char *text = lookup(name);
    int64_t value;

    return text != NULL && str_to_int(text, &value) && value > 0 &&
                   value < (INT64_MAX >> 20)
               ? (uint64_t)value << 20
               : 0;
}

/* Cores of the job on this node; 0: unknown. */
static uint64_t cores(const char *(*lookup)(const char *name))
{
    const char *text = lookup("SLURM_CPUS_ON_NODE");
    int64_t value;

    return text != NULL && str_to_int(text, &value) && value > 0 &&
                   value < 1 << 20
               ? (uint64_t)value
               : 0;
}

slurm_memory_t slurm_memory_limit(const char *(*lookup)(const char *name),
                                  const char *root)
{
    slurm_memory_t limit = {.bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
                                     (uint64_t)sysconf(_SC_PAGESIZE),
                            .source = "this host"};
    uint64_t per_cpu = megabytes(lookup, "SLURM_MEM_PER_CPU"), product;
    place_t place;

    smaller(&limit, megabytes(lookup, "SLURM_MEM_PER_NODE"),
            "SLURM_MEM_PER_NODE");
    if (!__builtin_mul_overflow(per_cpu, cores(lookup), &product))
        smaller(&limit, product, "SLURM_MEM_PER_CPU");
    if (!place_find(root, &place))
        return limit;
    for (; place.path[0] != '\0'; path_up(place.path))
        smaller(&limit, limit_read(&place, place.path), "the step's cgroup");
    smaller(&limit, limit_read(&place, ""), "the step's cgroup");
    return limit;
}

char *slurm_memory_words(const slurm_memory_t *limit, int64_t kills, char *out,
                         size_t room)
{
    char bytes[32];

    snprintf(out, room,
             "out of memory: the step's limit is %s (%s), oom_kill %lld",
             str_bytes(limit->bytes, bytes, sizeof bytes), limit->source,
             (long long)kills);
    return out;
}
