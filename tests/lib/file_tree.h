/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* file_tree: a folder of made-up files, such as those below /proc and /sys, for
 * code that takes the root of its paths. A suite makes it in .init and removes
 * it in .fini; Criterion runs each test in a process of its own. */
#ifndef CDDP_TESTS_LIB_FILE_TREE_H
#define CDDP_TESTS_LIB_FILE_TREE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

static char root[] = "/tmp/cddp-tree-XXXXXX";

/* Write [text] to the file [path] below the root. */
static void put(const char *path, const char *text)
{
    char *name = str_printf("%s/%s", root, path), *slash;
    err_t err = ERR_INIT;
    FILE *file;

    slash = strrchr(name, '/');
    *slash = '\0';
    cr_assert_eq(file_make_dirs(name, &err), ERR_OK, "%s", err.text);
    *slash = '/';
    file = fopen(name, "we");
    cr_assert_not_null(file, "%s", name);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    free(name);
}

static void root_make(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void root_remove(void)
{
    cr_assert_eq(file_remove_tree(root, NULL), ERR_OK);
}

#endif
