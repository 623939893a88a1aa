/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Bells: what wakes the comm thread of another rank of the node. It sleeps in
 * epoll, so a futex would not do, and an eventfd cannot be opened by another
 * process; a pipe can, through /proc, as the memory of the arenas is. Only a
 * thread that says on the board that it is asleep is rung for, so ringing costs
 * nothing while all are busy.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/ucx_group.h"

static node_seat_t *node_seats(const ucx_group_t *group)
{
    const ucx_node_t *node = &group->node;

    return (node_seat_t *)(void *)((char *)node->board + sizeof(node_board_t) +
                                   COMM_WORKS_MAX * node->stride);
}

bool ucx_bell_hang(ucx_group_t *group)
{
    ucx_node_t *node = &group->node;
    node_seat_t *seat = &node_seats(group)[group->place.local];
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    node->bell = ends[0];
    node->bells[group->place.local] = ends[1];
    seat->pid = getpid();
    seat->fd = ends[1];
    return true;
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

bool ucx_bell_reach(ucx_group_t *group)
{
    ucx_node_t *node = &group->node;
    bool all = true;

    for (int i = 0; i < group->place.count; i++) {
        if (i != group->place.local)
            node->bells[i] = seat_open(&node_seats(group)[i]);
        all &= node->bells[i] >= 0;
    }
    return all;
}

void ucx_bell_close(ucx_group_t *group)
{
    ucx_node_t *node = &group->node;

    for (int i = 0; node->bells != NULL && i < group->place.count; i++)
        if (node->bells[i] >= 0)
            close(node->bells[i]);
    if (node->bell >= 0)
        close(node->bell);
}

void ucx_bell_ring(ucx_group_t *group, int local)
{
    /* A pipe that is full rings already. */
    if (atomic_load(&node_seats(group)[local].asleep))
        (void)!write(group->node.bells[local], "", 1);
}

void ucx_bell_asleep(ucx_group_t *group, bool asleep)
{
    if (atomic_load(&group->node.open))
        atomic_store(&node_seats(group)[group->place.local].asleep, asleep);
}
