/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

int cmd_ckpt_lock(const char *run, const char *home)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path =
        str_printf(strcmp(run, home) == 0 ? "%s/../lock" : "%s/lock", run);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        fd = errno == ENOENT ? CMD_CKPT_UNLOCKED : CMD_CKPT_HELD;
    else if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        close(fd);
        fd = CMD_CKPT_HELD;
    }
    free(path);
    return fd;
}
