/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* fcntls: fcntl and fcntl64, which call fcntl_plain. They replace those of the
 * system in a program, or in a preloaded module. Only one source file of
 * this program or module may include this file. */
#ifndef CDDP_TESTS_LIB_FCNTLS_H
#define CDDP_TESTS_LIB_FCNTLS_H

#include <fcntl.h>
#include <stdarg.h>

/* fcntl with one argument. The including file defines this function. */
static int fcntl_plain(int fd, int cmd, void *argument);

int fcntl(int fd, int cmd, ...)
{
    va_list list;
    void *argument;

    va_start(list, cmd);
    argument = va_arg(list, void *);
    va_end(list);
    return fcntl_plain(fd, cmd, argument);
}

/* Programs that are built for 64-bit sizes of files call this name. */
int fcntl64(int fd, int cmd, ...) __attribute__((alias("fcntl")));

#endif
