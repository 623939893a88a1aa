/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A locale in which 1/2 is written "0,5": that of the machine, or one made for
 * the test. The test is skipped if neither is possible. */
#ifndef CDDP_TESTS_GERMAN_H
#define CDDP_TESTS_GERMAN_H

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GERMAN "de_DE.UTF-8"

/* Switch this process to that locale. A locale that has to be made is stored in
 * [directory], a directory of the test. */
static inline void german_begin(const char *directory)
{
    char command[512], half[16];

    if (setlocale(LC_ALL, GERMAN) == NULL) {
        snprintf(command, sizeof command,
                 "localedef -i de_DE -f UTF-8 '%s/" GERMAN "' >/dev/null 2>&1",
                 directory);
        if (system(command) != 0 || setenv("LOCPATH", directory, 1) != 0 ||
            setlocale(LC_ALL, GERMAN) == NULL)
            cr_skip_test("there is no locale " GERMAN ", and localedef cannot "
                         "make one (package locales)");
    }
    snprintf(half, sizeof half, "%.1f", 0.5);
    cr_assert_str_eq(half, "0,5");
}

#endif
