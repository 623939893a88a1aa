/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Bells: what wakes the comm thread of another rank of the node. It sleeps in
 * epoll, so a futex would not do, and an eventfd cannot be opened by another
 * process; a pipe can, through /proc, as the memory of the arenas is. Only a
 * thread that says on the board that it is asleep is rung for, so ringing costs
 * nothing while all are busy.
 */
#include "comm/node/node_bell.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "comm/node/node_priv.h"

bool node_bell_hang(node_t *node)
{
    node_seat_t *seat = &node_board_seats(node)[node->place.local];
    err_t why = ERR_INIT;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    node->bell = ends[0];
    node->bells[node->place.local] = ends[1];
    seat->pid = getpid();
    seat->fd = ends[1];
    if (node->config.watch(node->config.context, node->bell, &why) == ERR_OK)
        return true;
    log_warn("comm", "%s", why.text);
    return false;
}

/* The end of a pipe that [seat] names; -1: out of reach. */
static int seat_open(const node_seat_t *seat)
{
    struct stat status;
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)seat->pid,
             (long long)seat->fd);
    /* To read, too: so who rings for a dead rank gets no SIGPIPE. */
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool node_bell_reach(node_t *node)
{
    bool all = true;

    for (int i = 0; i < node->place.count; i++) {
        if (i != node->place.local)
            node->bells[i] = seat_open(&node_board_seats(node)[i]);
        all &= node->bells[i] >= 0;
    }
    return all;
}

void node_bell_close(node_t *node)
{
    for (int i = 0; node->bells != NULL && i < node->place.count; i++)
        if (node->bells[i] >= 0)
            close(node->bells[i]);
    if (node->bell >= 0)
        close(node->bell);
}

void node_bell_ring(node_t *node, int local)
{
    check(local >= 0 && local < node->place.count, "rank %d of %d is rung for",
          local, node->place.count);
    /* A pipe that is full rings already. */
    if (atomic_load(&node_board_seats(node)[local].asleep))
        (void)!write(node->bells[local], "", 1);
}

void node_bell_asleep(node_t *node, bool asleep)
{
    if (atomic_load(&node->open))
        atomic_store(&node_board_seats(node)[node->place.local].asleep, asleep);
}

void node_bell_clear(node_t *node)
{
    char rings[64];

    (void)!read(node->bell, rings, sizeof rings);
}
