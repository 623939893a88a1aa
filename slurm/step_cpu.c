/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/step_cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "slurm/cgroup.h"

/* The number behind [key] at the begin of a line of [text]; 0: none. */
static double number_of(const char *text, const char *key)
{
    const size_t length = strlen(key);

    for (; *text != '\0'; text += text[strcspn(text, "\n")] == '\n') {
        if (strncmp(text, key, length) == 0 && text[length] == ' ')
            return (double)strtoull(text + length, NULL, 10);
        text += strcspn(text, "\n");
    }
    return 0;
}

double slurm_cpu_throttled(const char *root)
{
    slurm_cgroup_t cgroup;
    char text[SLURM_CGROUP_VALUE];
    double seconds = 0;
    bool more;

    if (!slurm_cgroup_find(root, "cpu", &cgroup))
        return 0;
    do {
        slurm_cgroup_read(&cgroup, cgroup.path, "cpu.stat", text);
        seconds += cgroup.second ? 1e-6 * number_of(text, "throttled_usec")
                                 : 1e-9 * number_of(text, "throttled_time");
        more = cgroup.path[0] != '\0';
        slurm_cgroup_up(cgroup.path);
    } while (more);
    return seconds;
}

/* The second number of a file schedstat, which has "running waiting slices", in
 * ns. */
static double delay_read(const char *path)
{
    char *text = NULL, *second;
    double seconds = 0;
    size_t bytes;

    if (file_read(path, &text, &bytes, NULL) == ERR_OK) {
        strtoull(text, &second, 10);
        seconds = 1e-9 * (double)strtoull(second, NULL, 10);
    }
    free(text);
    return seconds;
}

/* A thread that ends meanwhile counts as 0. */
static double delay_sum(const char *root)
{
    char *tasks = str_printf("%s/proc/self/task", root);
    DIR *directory = opendir(tasks);
    const struct dirent *entry;
    double seconds = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char *path = str_printf("%s/%s/schedstat", tasks, entry->d_name);

        if (entry->d_name[0] != '.')
            seconds += delay_read(path);
        free(path);
    }
    if (directory != NULL)
        closedir(directory);
    free(tasks);
    return seconds;
}

double slurm_cpu_delay(const char *root, bool whole)
{
    char *path = str_printf("%s/proc/thread-self/schedstat", root);
    const double seconds = whole ? delay_sum(root) : delay_read(path);

    free(path);
    return seconds;
}

double slurm_cpu_hertz(const char *root)
{
    char *path =
        str_printf("%s/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
                   root, sched_getcpu());
    char *text = NULL;
    double hertz = 0;
    size_t bytes;

    if (file_read(path, &text, &bytes, NULL) == ERR_OK)
        hertz = 1e3 * (double)strtoull(text, NULL, 10);
    free(text);
    free(path);
    return hertz;
}
