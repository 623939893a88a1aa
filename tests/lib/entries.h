/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* entries: counts the entries of a directory, without "." and "..". */
#ifndef CDDP_TESTS_LIB_ENTRIES_H
#define CDDP_TESTS_LIB_ENTRIES_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <string.h>

/* Number of entries of the directory [path] whose names do not begin with a
 * dot. */
static inline int entries_count(const char *path)
{
    DIR *list = opendir(path);
    const struct dirent *entry;
    int count = 0;

    cr_assert_not_null(list, "%s", path);
    while ((entry = readdir(list)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* Number of entries of the directory [path] whose names begin with [prefix]. */
static inline int entries_begin(const char *path, const char *prefix)
{
    DIR *list = opendir(path);
    const struct dirent *entry;
    int count = 0;

    cr_assert_not_null(list, "%s", path);
    while ((entry = readdir(list)) != NULL)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
                 strcmp(entry->d_name, ".") != 0 &&
                 strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return count;
}

#endif
