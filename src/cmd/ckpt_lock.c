/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* The lock file [path] could not be locked, for the reason [number] (errno). */
static int refused(const char *path, int number, err_t *why)
{
    err_set(why, ERR_IO,
            "cannot lock %s: %s: a run may be writing in this directory; if "
            "none is, remove the lock file",
            path, strerror(number));
    return CMD_CKPT_REFUSED;
}

int cmd_ckpt_lock(const char *run, const char *home, err_t *why)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path =
        str_printf(strcmp(run, home) == 0 ? "%s/../lock" : "%s/lock", run);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        fd = errno == ENOENT ? CMD_CKPT_UNLOCKED : refused(path, errno, why);
    } else if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        const int number = errno;

        close(fd);
        fd = refused(path, number, why);
        if (number == EAGAIN || number == EACCES)
            err_set(why, ERR_BUSY,
                    "a run may be writing it: another process has the lock of "
                    "the run directory");
    }
    free(path);
    return fd;
}
