/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/retry.h"

/* Descriptors reserved for the rest of the program. */
#define DESCRIPTOR_SPARE 256

err_code_t hdf5io_descriptor_fail(const char *path, err_t *err)
{
    const int number = errno;
    struct rlimit limit = {0};
    err_code_t rc;

    if (number == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "cannot open %s: too many open files: this process, with "
                     "all its ranks, has reached its limit of %llu (hard "
                     "limit %llu): raise the limit (ulimit -Hn)",
                     path, (unsigned long long)limit.rlim_cur,
                     (unsigned long long)limit.rlim_max);
    else if (number == EACCES || number == EPERM ||
             retry_cause(number) == RETRY_ABSENT)
        rc = err_set(err, ERR_DATA, "cannot open %s: %s", path,
                     strerror(number));
    else
        rc = err_set(err, ERR_IO, "cannot open %s: %s", path, strerror(number));
    errno = number;
    return rc;
}

/* Raise the soft limit of open files, if the hard limit allows it. */
static bool descriptor_limit_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max / 2 > limit.rlim_cur ? 2 * limit.rlim_cur
                                                         : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Are few descriptors left after [fd] under the current limit? */
static bool descriptor_few(int fd)
{
    struct rlimit limit;
    rlim_t spare = DESCRIPTOR_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    if (spare > limit.rlim_max / 4)
        spare = limit.rlim_max / 4;
    return (rlim_t)fd + spare >= limit.rlim_cur;
}

int hdf5io_descriptor_share(int sharers)
{
    struct rlimit limit;
    rlim_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    share = limit.rlim_max / 2 / (rlim_t)sharers;
    if (share > INT_MAX)
        return INT_MAX;
    return share > 0 ? (int)share : 1;
}

int hdf5io_descriptor_open(const char *path)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EMFILE && descriptor_limit_raise());
    return fd;
}

bool hdf5io_descriptor_crowded(int fd)
{
    bool crowded;

    do
        crowded = descriptor_few(fd);
    while (crowded && descriptor_limit_raise());
    return crowded;
}
