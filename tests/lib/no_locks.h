/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* no_locks: the fcntl of the test program that includes this file is that of a
 * file system that may have no locks. */
#ifndef CDDP_TESTS_LIB_NO_LOCKS_H
#define CDDP_TESTS_LIB_NO_LOCKS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Are there none? */
static bool no_locks;

/* The fcntl of a file system that may have no locks. */
static int fcntl_plain(int fd, int cmd, void *argument)
{
    if (cmd == F_OFD_SETLK && no_locks) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, cmd, argument);
}

/* fcntl.h declares fcntl with variable arguments. */
int fcntl(int fd, int cmd, ...)
{
    va_list list;
    void *argument;

    va_start(list, cmd);
    argument = va_arg(list, void *);
    va_end(list);
    return fcntl_plain(fd, cmd, argument);
}

int fcntl64(int fd, int cmd, ...);
int fcntl64(int fd, int cmd, ...)
{
    va_list list;
    void *argument;

    va_start(list, cmd);
    argument = va_arg(list, void *);
    va_end(list);
    return fcntl_plain(fd, cmd, argument);
}

#endif
