/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The parent's side of exchanges (spawn_hub) if a rank ends before the parent
 * has read what the rank sent. The test holds the ranks' ends of the sockets,
 * so it decides what the parent has read.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/spawn_hub.h"
#include "boot/spawn_wire.h"

#define RANKS 2
#define TIMEOUT 3600 /* seconds: never reached */

static spawn_hub_t *hub;
static int ends[RANKS]; /* of the ranks */

static void open_hub(void)
{
    err_t err = ERR_INIT;

    cr_assert_eq(spawn_hub_new(RANKS, TIMEOUT, &hub, &err), ERR_OK);
    for (int r = 0; r < RANKS; r++) {
        int pair[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        spawn_hub_add(hub, r, pair[0]);
        ends[r] = pair[1];
    }
}

static void close_hub(void)
{
    for (int r = 0; r < RANKS; r++)
        if (ends[r] >= 0)
            close(ends[r]);
    spawn_hub_free(hub);
}

/* The parent does all that can be done without waiting. */
static void serve(void)
{
    struct pollfd polls[RANKS];

    spawn_hub_polls(hub, polls);
    while (poll(polls, RANKS, 0) > 0) {
        spawn_hub_serve(hub, polls);
        spawn_hub_polls(hub, polls);
    }
}

static void send_all(int rank, const void *bytes, size_t count)
{
    cr_assert_eq(send(ends[rank], bytes, count, 0), (ssize_t)count);
}

/* The rank comes to an exchange with one byte. */
static void give(int rank, char byte)
{
    const spawn_head_t head = {.kind = SPAWN_GIVE, .bytes = 1};

    send_all(rank, &head, sizeof head);
    send_all(rank, &byte, 1);
}

/* The rank closes its end: its process has ended. */
static void end(int rank)
{
    close(ends[rank]);
    ends[rank] = -1;
}

/* Receive [count] bytes that the parent has already sent. */
static void receive(int rank, void *bytes, size_t count)
{
    cr_assert_eq(recv(ends[rank], bytes, count, MSG_DONTWAIT), (ssize_t)count);
}

/* The parent has told [rank] that no exchange succeeds, for this reason. */
static void told(int rank, const char *reason)
{
    spawn_head_t head;
    err_t fault;

    receive(rank, &head, sizeof head);
    cr_assert_eq(head.kind, SPAWN_FAULT);
    receive(rank, &fault, sizeof fault);
    cr_assert_not_null(strstr(fault.text, reason), "%s", fault.text);
}

Test(spawn_hub, a_rank_that_left_and_ended_at_once_has_left)
{
    const spawn_head_t leave = {.kind = SPAWN_LEAVE};

    open_hub();
    give(0, 'a');
    serve();
    send_all(1, &leave, sizeof leave);
    end(1);
    spawn_hub_ended(hub, 1, "has ended with status 0");
    serve();
    told(0, "start-up exchange 0: rank 1 left before it");
    close_hub();
}

Test(spawn_hub, what_a_rank_sent_before_its_end_counts)
{
    spawn_head_t head;
    char all[RANKS];

    open_hub();
    give(0, 'a');
    serve();
    give(1, 'b');
    end(1);
    spawn_hub_ended(hub, 1, "was killed by signal 9");
    serve();
    receive(0, &head, sizeof head);
    cr_assert_eq(head.kind, SPAWN_ANSWER);
    cr_assert_eq(head.bytes, RANKS);
    receive(0, all, sizeof all);
    cr_assert_arr_eq(all, "ab", RANKS);
    give(0, 'c');
    serve();
    told(0, "start-up exchange 1: rank 1 was killed by signal 9");
    close_hub();
}
