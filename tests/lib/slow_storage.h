/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * slow_storage: simulates reads that take long, and storage that is slow. It
 * replaces preadv2 and posix_fadvise of the system in a program. The program
 * defines pread itself, and calls slow_read there. Only one source file of a
 * program may include this file.
 */
#ifndef CDDP_TESTS_LIB_SLOW_STORAGE_H
#define CDDP_TESTS_LIB_SLOW_STORAGE_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/clock.h"

/* globals: replaced functions have no argument for them */
/* The next read takes long. */
static atomic_bool slow_next;
/* The system says that the page cache holds the bytes of each read. */
static atomic_bool slow_held;
/* How often the system was told of a read of [slow_length] bytes. */
static atomic_int slow_count;
static off_t slow_length;

/* To be called in each read: waits if this read is to take long. */
static void slow_read(void)
{
    const double begin = clock_now();

    if (atomic_exchange(&slow_next, false))
        while (clock_now() - begin < 0.001)
            ;
}

/* Only hdf5io_slow_look calls it. */
ssize_t preadv2(int fd, const struct iovec *to, int count, off_t offset,
                int flags)
{
    (void)fd;
    (void)to;
    (void)count;
    (void)offset;
    (void)flags;
    errno = EAGAIN;
    return atomic_load(&slow_held) ? 1 : -1;
}

int posix_fadvise(int fd, off_t offset, off_t length, int advice)
{
    (void)fd;
    (void)offset;
    if (advice == POSIX_FADV_WILLNEED && length == slow_length)
        atomic_fetch_add(&slow_count, 1);
    return 0;
}

#endif
