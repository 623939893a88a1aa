/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A comm thread sleeps in epoll, where a futex cannot wake it. An eventfd
 * cannot be opened by another process, but a pipe can, through /proc, like the
 * memory of the arenas. A thread is woken only if it has set its [asleep] in
 * the control block: so wakeups cost nothing while all threads are busy.
 */
#include "comm/node/node_wakeup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "comm/node/node_control.h"
#include "comm/node/node_priv.h"

bool node_wakeup_open(node_t *node)
{
    node_wakeup_t *mine = &node_control_wakeups(node)[node->place.local];
    err_t why = ERR_INIT;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    node->wake_fd = ends[0];
    node->wake_fds[node->place.local] = ends[1];
    mine->pid = getpid();
    mine->fd = ends[1];
    if (node->config.watch(node->config.context, node->wake_fd, &why) == ERR_OK)
        return true;
    log_warn("comm", "%s", why.text);
    return false;
}

/* Open the write end of the pipe of [theirs]; -1 if it cannot be opened. */
static int pipe_open(const node_wakeup_t *theirs)
{
    struct stat status;
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)theirs->pid,
             (long long)theirs->fd);
    /* Open it for reading, too: then a write to the pipe of a dead rank gives
     * no SIGPIPE. */
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool node_wakeup_connect(node_t *node)
{
    bool all = true;

    for (int i = 0; i < node->place.count; i++) {
        if (i != node->place.local)
            node->wake_fds[i] = pipe_open(&node_control_wakeups(node)[i]);
        all &= node->wake_fds[i] >= 0;
    }
    return all;
}

void node_wakeup_close(node_t *node)
{
    for (int i = 0; node->wake_fds != NULL && i < node->place.count; i++)
        if (node->wake_fds[i] >= 0)
            close(node->wake_fds[i]);
    if (node->wake_fd >= 0)
        close(node->wake_fd);
}

void node_wakeup_send(node_t *node, int local)
{
    check(local >= 0 && local < node->place.count, "rank %d of %d is woken",
          local, node->place.count);
    /* A full pipe wakes the thread already, so the result does not matter. */
    if (atomic_load(&node_control_wakeups(node)[local].asleep))
        (void)!write(node->wake_fds[local], "", 1);
}

void node_wakeup_asleep(node_t *node, bool asleep)
{
    if (atomic_load(&node->open))
        atomic_store(&node_control_wakeups(node)[node->place.local].asleep,
                     asleep);
}

void node_wakeup_clear(node_t *node)
{
    char bytes[64];

    (void)!read(node->wake_fd, bytes, sizeof bytes);
}
