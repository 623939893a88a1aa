/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* entries: counts the entries of a directory. */
#ifndef CDDP_TESTS_LIB_ENTRIES_H
#define CDDP_TESTS_LIB_ENTRIES_H

#include <criterion/criterion.h>
#include <dirent.h>

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

#endif
