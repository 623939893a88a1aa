/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every rank is in one exchange at a time, so one answer is enough: when all
 * ranks have come to the next exchange, all have read the answer of the last.
 */
#include "boot/spawn_hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "boot/boot_backend.h"
#include "boot/spawn_wire.h"

typedef struct hub_rank {
    int fd; /* -1: closed */
    /* The message that it sends; [got] bytes of head and data have arrived. */
    spawn_head_t head;
    char *data; /* head.bytes */
    size_t got;
    bool here; /* it has come to this exchange */
    bool gone; /* it has left by boot_close */
    /* What must still be sent to it. */
    const char *out;
    size_t left;
} hub_rank_t;

typedef struct fault_message {
    spawn_head_t head;
    err_t fault;
} fault_message_t;

struct spawn_hub {
    int size, arrived;
    double timeout, since; /* when the first rank came to this exchange */
    uint64_t round;
    char *answer; /* a spawn_head_t and the bytes of all ranks */
    bool failed;
    fault_message_t fault;
    hub_rank_t ranks[];
};

err_code_t spawn_hub_new(int size, double timeout, spawn_hub_t **out,
                         err_t *err)
{
    spawn_hub_t *hub = NULL;
    err_code_t rc =
        mem_new_tail(spawn_hub_t, ranks, (size_t)size, "start-up", &hub, err);

    if (rc != ERR_OK)
        return rc;
    hub->size = size;
    hub->timeout = timeout;
    for (int r = 0; r < size; r++)
        hub->ranks[r].fd = -1;
    *out = hub;
    return ERR_OK;
}

static void rank_close(hub_rank_t *rank)
{
    if (rank->fd >= 0)
        close(rank->fd);
    rank->fd = -1;
    rank->left = 0;
}

void spawn_hub_free(spawn_hub_t *hub)
{
    if (hub == NULL)
        return;
    for (int r = 0; r < hub->size; r++) {
        rank_close(&hub->ranks[r]);
        free(hub->ranks[r].data);
    }
    free(hub->answer);
    mem_free(hub);
}

void spawn_hub_add(spawn_hub_t *hub, int rank, int fd)
{
    hub->ranks[rank].fd = fd;
}

/* ---- faults -------------------------------------------------------------- */

static void fault_send(spawn_hub_t *hub, hub_rank_t *rank)
{
    rank->out = (const char *)&hub->fault;
    rank->left = sizeof hub->fault;
}

/* Let all current and later exchanges fail, and tell the ranks that wait. */
static void hub_fail(spawn_hub_t *hub, const err_t *fault)
{
    if (hub->failed)
        return;
    hub->failed = true;
    hub->fault.head =
        (spawn_head_t){.kind = SPAWN_FAULT, .bytes = sizeof hub->fault.fault};
    hub->fault.fault = *fault;
    for (int r = 0; r < hub->size; r++)
        if (hub->ranks[r].here)
            fault_send(hub, &hub->ranks[r]);
}

/* Fail, and name the ranks that have not come to the exchange; if [left], only
 * those of them that have left. */
static void hub_fail_absent(spawn_hub_t *hub, bool left, const char *why)
{
    char names[256];
    bool *absent = NULL;
    err_t fault = ERR_INIT;
    int first = -1;

    if (mem_new(bool, (size_t)hub->size, "start-up", &absent, &fault) !=
        ERR_OK) {
        hub_fail(hub, &fault);
        return;
    }
    for (int r = hub->size - 1; r >= 0; r--) {
        absent[r] = !hub->ranks[r].here && (!left || hub->ranks[r].gone);
        if (absent[r])
            first = r;
    }
    boot_rank_list(absent, hub->size, names, sizeof names);
    err_set_peer(&fault, first, NULL, "start-up exchange %llu: %s %s",
                 (unsigned long long)hub->round, names, why);
    hub_fail(hub, &fault);
    mem_free(absent);
}

/* ---- exchanges ----------------------------------------------------------- */

/* All ranks have come: prepare the answer for each. */
static void round_end(spawn_hub_t *hub)
{
    const size_t bytes = hub->ranks[0].head.bytes;
    const spawn_head_t head = {.kind = SPAWN_ANSWER,
                               .bytes = (uint64_t)hub->size * bytes};
    char *at = realloc(hub->answer, sizeof head + head.bytes);
    err_t fault = ERR_INIT;

    if (at == NULL) {
        err_set(&fault, ERR_MEMORY, "out of memory exchanging %llu bytes",
                (unsigned long long)head.bytes);
        hub_fail(hub, &fault);
        return;
    }
    hub->answer = at;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (int r = 0; r < hub->size; r++, at += bytes) {
        hub_rank_t *rank = &hub->ranks[r];

        check(rank->left == 0, "rank %d has %zu bytes of the last answer left",
              r, rank->left);
        if (bytes > 0)
            memcpy(at, rank->data, bytes);
        rank->here = false;
        rank->out = hub->answer;
        rank->left = sizeof head + head.bytes;
    }
    hub->arrived = 0;
    hub->round++;
}

/* The message of a rank is complete. */
static void message_take(spawn_hub_t *hub, int r)
{
    hub_rank_t *rank = &hub->ranks[r];
    err_t fault = ERR_INIT;

    rank->got = 0;
    if (rank->head.kind == SPAWN_LEAVE) {
        rank->gone = true;
        rank_close(rank);
        return;
    }
    rank->here = true;
    if (hub->arrived++ == 0)
        hub->since = clock_now();
    for (int k = 0; k < hub->size && !hub->failed; k++)
        if (hub->ranks[k].here &&
            hub->ranks[k].head.bytes != rank->head.bytes) {
            err_set(&fault, ERR_CONFIG,
                    "start-up exchange %llu: rank %d gives %llu bytes, rank "
                    "%d %llu: do all ranks run the same build and run file?",
                    (unsigned long long)hub->round, r,
                    (unsigned long long)rank->head.bytes, k,
                    (unsigned long long)hub->ranks[k].head.bytes);
            hub_fail(hub, &fault);
            return;
        }
    if (hub->failed)
        fault_send(hub, rank);
    else if (hub->arrived == hub->size)
        round_end(hub);
}

/* Where the next bytes of a rank's message go, and how many are missing. */
static char *rank_target(hub_rank_t *rank, size_t *missing)
{
    if (rank->got < sizeof rank->head) {
        *missing = sizeof rank->head - rank->got;
        return (char *)&rank->head + rank->got;
    }
    *missing = sizeof rank->head + rank->head.bytes - rank->got;
    return rank->data + (rank->got - sizeof rank->head);
}

/* The head has come: make room for the data. */
static void rank_room(spawn_hub_t *hub, hub_rank_t *rank)
{
    char *data = realloc(rank->data, rank->head.bytes + 1);
    err_t fault = ERR_INIT;

    if (data != NULL) {
        rank->data = data;
        return;
    }
    err_set(&fault, ERR_MEMORY, "out of memory exchanging %llu bytes",
            (unsigned long long)rank->head.bytes);
    hub_fail(hub, &fault);
    rank_close(rank);
}

/* Read what a rank has sent. At the end of its data the socket is closed;
 * spawn_hub_ended learns how its process has ended. */
static void rank_read(spawn_hub_t *hub, int r)
{
    hub_rank_t *rank = &hub->ranks[r];

    while (rank->fd >= 0 && !rank->here) {
        size_t missing;
        char *target = rank_target(rank, &missing);
        const ssize_t got = recv(rank->fd, target, missing, MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            rank_close(rank);
            return;
        }
        rank->got += (size_t)got;
        if (rank->got == sizeof rank->head)
            rank_room(hub, rank);
        if (rank->got == sizeof rank->head + rank->head.bytes)
            message_take(hub, r);
    }
}

static void rank_write(hub_rank_t *rank)
{
    const ssize_t sent =
        send(rank->fd, rank->out, rank->left, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0) {
        rank->out += sent;
        rank->left -= (size_t)sent;
    } else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
        rank_close(rank);
    }
}

/* A rank that waits for an exchange must not wait for ever. */
static void absent_check(spawn_hub_t *hub)
{
    if (hub->failed || hub->arrived == 0)
        return;
    for (int r = 0; r < hub->size; r++)
        if (hub->ranks[r].gone && !hub->ranks[r].here) {
            hub_fail_absent(hub, true, "left before it");
            return;
        }
    if (clock_now() - hub->since > hub->timeout)
        hub_fail_absent(hub, false, "did not come in time");
}

void spawn_hub_ended(spawn_hub_t *hub, int rank, const char *how)
{
    err_t fault = ERR_INIT;

    /* What the rank sent before its end counts, and perhaps was not read yet.
     */
    rank_read(hub, rank);
    if (hub->ranks[rank].gone) {
        absent_check(hub);
        return;
    }
    err_set_peer(&fault, rank, NULL, "start-up exchange %llu: rank %d %s",
                 (unsigned long long)hub->round, rank, how);
    hub_fail(hub, &fault);
}

void spawn_hub_polls(const spawn_hub_t *hub, struct pollfd *out)
{
    for (int r = 0; r < hub->size; r++) {
        const hub_rank_t *rank = &hub->ranks[r];

        out[r] =
            (struct pollfd){.fd = rank->fd,
                            .events = (short)((rank->here ? 0 : POLLIN) |
                                              (rank->left > 0 ? POLLOUT : 0))};
        /* A rank that waits for the others sends nothing. If it has ended, poll
         * would report that again and again. */
        if (out[r].events == 0)
            out[r].fd = -1;
    }
}

void spawn_hub_serve(spawn_hub_t *hub, const struct pollfd *polls)
{
    for (int r = 0; r < hub->size; r++) {
        if ((polls[r].revents & POLLOUT) != 0 && hub->ranks[r].left > 0)
            rank_write(&hub->ranks[r]);
        if ((polls[r].revents & ~POLLOUT) != 0)
            rank_read(hub, r);
    }
    absent_check(hub);
}
