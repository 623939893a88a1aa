/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/slow.h"

#include <fcntl.h>

/* Linux may read only the first part of a longer piece. */
#define TELL_BYTES ((uint64_t)128 << 10)

void hdf5io_slow_tell(int fd, uint64_t at, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t some = bytes < TELL_BYTES ? bytes : TELL_BYTES;

        (void)posix_fadvise(fd, (off_t)at, (off_t)some, POSIX_FADV_WILLNEED);
        at += some;
        bytes -= some;
    }
}
