/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A reader that has stopped reading, like a stopped terminal or a pager. */
#ifndef CDDP_TESTS_LIB_HALTED_H
#define CDDP_TESTS_LIB_HALTED_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

/* Open a full pipe: a write to ends[1] blocks until ends[0] is read. */
static inline void halted_open(int ends[2])
{
    static const char page[4096];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], page, sizeof page) > 0)
        continue;
    cr_assert_eq(fcntl(ends[1], F_SETFL, 0), 0);
}

#endif
