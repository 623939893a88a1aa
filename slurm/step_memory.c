/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every cgroup above that of this process limits it, too.
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

#include "base/str.h"
#include "slurm/cgroup.h"

/* Version 1 says "no limit" by the largest number of whole pages. */
#define NO_LIMIT ((uint64_t)1 << 60)

/* Levels of cgroups below a step that may hold its tasks: step/user/task. */
#define DEPTH 3

/* ---- limits and kills ---------------------------------------------------- */

/* The limit of the cgroup [path]; UINT64_MAX: none. */
static uint64_t limit_read(const slurm_cgroup_t *place, const char *path)
{
    char text[SLURM_CGROUP_VALUE];
    uint64_t limit = UINT64_MAX;

    slurm_cgroup_read(place, path,
                      place->second ? "memory.max" : "memory.limit_in_bytes",
                      text);
    if (text[0] >= '0' && text[0] <= '9')
        limit = strtoull(text, NULL, 10);
    return limit < NO_LIMIT ? limit : UINT64_MAX;
}

/* Number of kills in the cgroup [path] alone (version 1), or including all
 * cgroups below it (version 2); -1: unknown. */
static int64_t kills_read(const slurm_cgroup_t *place, const char *path)
{
    static const char key[] = "oom_kill ";
    char text[SLURM_CGROUP_VALUE];
    const char *at;

    slurm_cgroup_read(place, path,
                      place->second ? "memory.events" : "memory.oom_control",
                      text);
    at = strstr(text, key);
    return at == NULL ? -1 : (int64_t)strtoll(at + strlen(key), NULL, 10);
}

/* Number of kills in the cgroup [path] and in those below it. */
static int64_t kills_sum(const slurm_cgroup_t *place, const char *path,
                         int depth)
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

/* ---- for users ----------------------------------------------------------- */

/* Is the cgroup [path] that of a whole step? */
static bool is_step(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strncmp(slash, "/step_", 6) == 0;
}

int64_t slurm_memory_kills(const char *root)
{
    slurm_cgroup_t place;
    char step[sizeof place.path];

    if (!slurm_cgroup_find(root, "memory", &place))
        return -1;
    snprintf(step, sizeof step, "%s", place.path);
    while (step[0] != '\0' && !is_step(step))
        slurm_cgroup_up(step);
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
    slurm_cgroup_t place;

    smaller(&limit, megabytes(lookup, "SLURM_MEM_PER_NODE"),
            "SLURM_MEM_PER_NODE");
    if (!__builtin_mul_overflow(per_cpu, cores(lookup), &product))
        smaller(&limit, product, "SLURM_MEM_PER_CPU");
    if (!slurm_cgroup_find(root, "memory", &place))
        return limit;
    for (; place.path[0] != '\0'; slurm_cgroup_up(place.path))
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
