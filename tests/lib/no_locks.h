/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* no_locks: the fcntl of the test program that includes this file is that of a
 * file system that may have no locks. */
#ifndef CDDP_TESTS_LIB_NO_LOCKS_H
#define CDDP_TESTS_LIB_NO_LOCKS_H

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fcntls.h"

/* Does the file system have no locks? */
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

#endif
