/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/slow.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

/* Linux may read only the first part of a longer piece. */
#define TELL_BYTES ((uint64_t)128 << 10)

/* Does the page cache hold byte [at]? True also if the file has no such byte:
 * the read reports that. */
static bool byte_held(int fd, uint64_t at)
{
    char byte;
    const struct iovec to = {.iov_base = &byte, .iov_len = 1};
    ssize_t got;

    do
        got = preadv2(fd, &to, 1, (off_t)at, RWF_NOWAIT);
    while (got < 0 && errno == EINTR);
    return got >= 0;
}

bool hdf5io_slow_look(slow_t *slow, int fd, uint64_t at, uint64_t bytes)
{
    const int number = errno;
    const bool held =
        bytes == 0 || (byte_held(fd, at) && byte_held(fd, at + bytes - 1));

    errno = number;
    if (held) {
        atomic_fetch_sub(&slow->doubts, 1);
        return false;
    }
    atomic_store(&slow->doubts, 0);
    atomic_store(&slow->tells, SLOW_TELLS);
    return true;
}

void hdf5io_slow_tell(int fd, uint64_t at, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t some = bytes < TELL_BYTES ? bytes : TELL_BYTES;

        (void)posix_fadvise(fd, (off_t)at, (off_t)some, POSIX_FADV_WILLNEED);
        at += some;
        bytes -= some;
    }
}
