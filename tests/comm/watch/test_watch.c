/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Watches of several ranks in one process: the test simulates time, and
 * delivers each note from the rank that sends it to its receiver. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "comm/watch/watch.h"

#define RANKS_MOST 64
#define MAIL_MOST 16384
#define TIMEOUT 8.0 /* seconds; beats are sent every second */
#define STEP 0.125  /* seconds between two looks */

typedef struct member {
    watch_t *watch;
    watch_view_t view; /* what the rank does now */
    err_t fault;       /* its first fault */
    bool told;         /* watch_tell was called */
    bool dead;         /* sends nothing and receives nothing */
    bool slow; /* its sends stay pending until the test calls watch_sent */
    int sent[WATCH_KINDS];
    int resumed;
} member_t;

typedef struct mail {
    int to;
    watch_note_t note;
} mail_t;

static int size;
static double now;
static member_t members[RANKS_MOST];
static comm_hello_t hellos[RANKS_MOST];
static mail_t mail[MAIL_MOST];
static int mails;

/* ---- a group ------------------------------------------------------------- */

static void view(void *context, watch_view_t *out)
{
    *out = ((member_t *)context)->view;
}

static bool send_note(void *context, int rank, const watch_note_t *note)
{
    member_t *self = context;

    cr_assert_lt(mails, MAIL_MOST);
    mail[mails].to = rank;
    mail[mails++].note = *note;
    self->sent[note->kind]++;
    return self->slow;
}

static void fail(void *context, const err_t *fault)
{
    member_t *self = context;

    if (self->fault.code == ERR_OK)
        self->fault = *fault;
}

static void resumed(void *context, double instant)
{
    member_t *self = context;

    self->resumed++;
    self->view.since = self->view.called = instant;
}

static void group_open(int ranks)
{
    err_t err = ERR_INIT;

    size = ranks;
    now = 1000;
    mails = 0;
    for (int i = 0; i < size; i++) {
        watch_config_t config = {.rank = i,
                                 .size = size,
                                 .timeout = TIMEOUT,
                                 .hellos = hellos,
                                 .context = &members[i],
                                 .view = view,
                                 .send = send_note,
                                 .fail = fail,
                                 .resumed = resumed};

        /* the number that messages use for this rank */
        hellos[i].name = i + 100;
        snprintf(hellos[i].host, sizeof hellos[i].host, "host%d", i / 2);
        members[i] = (member_t){
            .fault = ERR_INIT,
            .view = {.oldest = WATCH_NONE, .newest = WATCH_NONE, .step = -1}};
        cr_assert_eq(watch_open(&config, now, &members[i].watch, &err), ERR_OK,
                     "%s", err.text);
    }
}

static void group_close(void)
{
    for (int i = 0; i < size; i++)
        watch_close(members[i].watch);
    size = 0;
}

TestSuite(watch, .fini = group_close);

static void turn(void)
{
    int count = mails;

    for (int i = 0; i < size; i++) {
        member_t *self = &members[i];

        if (self->dead)
            continue;
        watch_tick(self->watch, now);
        if (self->fault.code != ERR_OK && !self->told) {
            self->told = true;
            watch_tell(self->watch, &self->fault);
        }
        watch_send(self->watch);
    }
    for (int i = 0; i < count; i++)
        if (!members[mail[i].to].dead)
            watch_hear(members[mail[i].to].watch, &mail[i].note, now);
    memmove(mail, mail + count, (size_t)(mails - count) * sizeof *mail);
    mails -= count;
}

/* Let [seconds] pass. */
static void pass(double seconds)
{
    for (double end = now + seconds; now < end; now += STEP)
        turn();
}

/* Every living rank starts collective [number] now. */
static void all_start(uint64_t number)
{
    for (int i = 0; i < size; i++) {
        watch_view_t *does = &members[i].view;

        does->started = number + 1;
        does->finished = does->oldest = does->newest = number;
        does->since = does->called = now;
        does->driven = does->waiting = true;
        does->kind = "all-reduce";
        does->step = 40;
        does->phase = "backward";
    }
}

/* Rank [rank] computes and has not started the collective in which the others
 * wait. */
static void stays_away(int rank)
{
    watch_view_t *does = &members[rank].view;

    does->started--;
    does->oldest = does->newest = WATCH_NONE;
    does->driven = does->waiting = false;
}

/* Check that all living ranks blame [rank], for [did]. */
static void all_blame(int rank, const char *did)
{
    for (int i = 0; i < size; i++) {
        const err_t *fault = &members[i].fault;

        if (members[i].dead)
            continue;
        cr_assert_eq(fault->code, ERR_PEER, "rank %d: %s", i, fault->text);
        cr_assert_eq(fault->culprit, rank + 100, "rank %d: %s", i, fault->text);
        cr_assert_str_eq(fault->host, hellos[rank].host);
        cr_assert_not_null(strstr(fault->text, did), "%s", fault->text);
    }
}

static void nobody_blames(void)
{
    for (int i = 0; i < size; i++)
        cr_assert_eq(members[i].fault.code, ERR_OK, "rank %d: %s", i,
                     members[i].fault.text);
}

/* ---- who is to blame ----------------------------------------------------- */

Test(watch, nobody_while_all_is_well)
{
    group_open(5);
    for (uint64_t number = 0; number < 20; number++) {
        all_start(number);
        for (int i = 0; i < size; i++)
            members[i].view.moves = number;
        pass(5);
    }
    nobody_blames();
    for (int i = 0; i < size; i++)
        cr_assert_geq(members[i].sent[WATCH_BEAT], 90 * (size - 1));
}

Test(watch, who_is_silent)
{
    group_open(5);
    all_start(3);
    pass(2);
    members[2].dead = true;
    pass(TIMEOUT - 1);
    nobody_blames();
    pass(3);
    all_blame(2, "gives no sign of life");
    cr_assert_not_null(strstr(members[0].fault.text,
                              "step 40, backward; rank 100 waits in backward, "
                              "step 40, for all-reduce 3"),
                       "%s", members[0].fault.text);
}

Test(watch, who_makes_no_progress)
{
    group_open(4);
    all_start(3);
    stays_away(1);
    pass(TIMEOUT - 1);
    nobody_blames();
    pass(3);
    all_blame(1, "makes no progress and others wait for it");
}

/* The rank computes for long, and reports progress. */
Test(watch, nobody_who_makes_progress)
{
    group_open(4);
    all_start(3);
    stays_away(1);
    for (int i = 0; i < 40; i++) {
        members[1].view.progress++;
        pass(1);
    }
    nobody_blames();
}

Test(watch, who_has_died)
{
    group_open(3);
    all_start(3);
    pass(1);
    members[1].dead = true;
    watch_lost(members[0].watch, 1, now);
    cr_assert_leq(watch_due(members[0].watch), now);
    pass(0.5);
    all_blame(1, "died or lost its connection");
}

/* Its good-bye arrives after its process was seen to have ended. */
Test(watch, nobody_whose_last_words_come)
{
    group_open(2);
    pass(1);
    watch_leave(members[1].watch);
    watch_send(members[1].watch);
    members[1].dead = true;
    watch_lost(members[0].watch, 1, now);
    pass(3 * TIMEOUT);
    nobody_blames();
}

Test(watch, who_left_early)
{
    group_open(3);
    all_start(6);
    members[2].view = (watch_view_t){.started = 6,
                                     .finished = 6,
                                     .oldest = WATCH_NONE,
                                     .newest = WATCH_NONE};
    watch_leave(members[2].watch);
    pass(1);
    for (int i = 0; i < 2; i++)
        cr_assert_not_null(
            strstr(members[i].fault.text, "left the group early"), "%s",
            members[i].fault.text);
}

Test(watch, nobody_who_leaves_at_the_end)
{
    group_open(6);
    pass(2);
    for (int i = 0; i < size; i++) {
        watch_leave(members[i].watch);
        pass(0.5);
    }
    pass(1);
    nobody_blames();
    for (int i = 0; i < size; i++)
        cr_assert(watch_has_left(members[i].watch), "rank %d", i);
}

/* All ranks wait in the same collective, and no data moves. */
Test(watch, nobody_of_a_network_that_stalls)
{
    group_open(3);
    all_start(9);
    pass(2 * TIMEOUT - 1);
    nobody_blames();
    pass(3);
    for (int i = 0; i < size; i++) {
        cr_assert_eq(members[i].fault.code, ERR_PEER);
        cr_assert_eq(members[i].fault.culprit, -1);
        cr_assert_not_null(
            strstr(members[i].fault.text, "collective 9 moved no data"), "%s",
            members[i].fault.text);
    }
}

/* ---- devices ------------------------------------------------------------- */

/* The device of every rank has begun collective [number], and waits in it. */
static void devices_begin(uint64_t number)
{
    for (int i = 0; i < size; i++) {
        members[i].view.device.begun = number;
        members[i].view.device.ended = number - 1;
        members[i].view.phase = "backward";
    }
}

/* In a large group only some ranks get its beats; they tell the others. */
Test(watch, whose_device_does_not_begin)
{
    for (int ranks = 4; ranks <= 48; ranks += 44) {
        group_open(ranks);
        devices_begin(7);
        members[2].view.device.begun = 6;
        pass(TIMEOUT - 1);
        nobody_blames();
        pass(3);
        all_blame(2, "has not begun collective 7");
        group_close();
    }
}

/* The others have ended the collective, and wait in the next one. */
Test(watch, whose_device_does_not_end)
{
    group_open(3);
    devices_begin(8);
    members[1].view.device = (comm_marks_t){.begun = 7, .ended = 6};
    pass(TIMEOUT - 1);
    nobody_blames();
    pass(3);
    all_blame(1, "has not ended collective 7");
}

/* The others have nothing more to do. */
Test(watch, its_own_device_that_does_not_end)
{
    group_open(3);
    devices_begin(7);
    members[0].view.device.ended = members[2].view.device.ended = 7;
    pass(TIMEOUT - 1);
    nobody_blames();
    pass(6);
    all_blame(1, "has not ended collective 7");
}

Test(watch, nobody_if_all_devices_are_in_a_collective)
{
    group_open(3);
    devices_begin(7);
    pass(TIMEOUT + 1);
    nobody_blames();
    pass(4);
    for (int i = 0; i < size; i++) {
        cr_assert_eq(members[i].fault.code, ERR_PEER);
        cr_assert_eq(members[i].fault.culprit, -1);
        cr_assert_not_null(strstr(members[i].fault.text, "collective 7"));
    }
}

/* The rank that is behind makes progress, on the host or on its device. */
Test(watch, nobody_whose_device_is_slow)
{
    group_open(3);
    devices_begin(40);
    members[1].view.device = (comm_marks_t){.begun = 3, .ended = 3};
    for (int i = 0; i < 40; i++) {
        if (i % 2 == 0)
            members[1].view.progress++;
        else
            members[1].view.device.begun = ++members[1].view.device.ended;
        pass(i % 3);
    }
    nobody_blames();
}

Test(watch, no_device_after_a_pause)
{
    group_open(3);
    devices_begin(7);
    members[1].view.device.begun = 6;
    pass(2);
    now += 10 * TIMEOUT;
    pass(TIMEOUT - 2);
    nobody_blames();
}

/* ---- pauses -------------------------------------------------------------- */

/* All processes were stopped for a while, as on a suspended machine. */
Test(watch, nobody_after_a_pause)
{
    group_open(3);
    all_start(2);
    stays_away(1);
    pass(2);
    now += 10 * TIMEOUT;
    pass(TIMEOUT - 2);
    nobody_blames();
    for (int i = 0; i < size; i++)
        cr_assert_eq(members[i].resumed, 1);
}

/* ---- calls --------------------------------------------------------------- */

static void calls(int rank, size_t count)
{
    comm_request_t request = {.kind = COMM_ALLREDUCE,
                              .count = count,
                              .type = COMM_FLOAT32,
                              .op = COMM_SUM};
    member_t *self = &members[rank];

    self->view.call = watch_call_of(&request, self->view.oldest, false);
    watch_begin(self->watch, &self->view.call, now);
}

Test(watch, calls_that_differ)
{
    group_open(3);
    all_start(4);
    for (int i = 0; i < size; i++)
        calls(i, i == 2 ? 11 : 10);
    cr_assert_leq(watch_due(members[0].watch), now + 0.1);
    pass(1);
    for (int i = 0; i < size; i++) {
        cr_assert_eq(members[i].fault.code, ERR_CONFIG);
        cr_assert_not_null(
            strstr(members[i].fault.text, "called an all-reduce of 10 float32"),
            "%s", members[i].fault.text);
        cr_assert_not_null(strstr(members[i].fault.text,
                                  "rank 102 on host1 an all-reduce of 11"),
                           "%s", members[i].fault.text);
    }
}

/* One rank sends its call before the other rank has begun its own. */
Test(watch, calls_that_differ_later)
{
    group_open(2);
    all_start(4);
    stays_away(1);
    calls(0, 10);
    pass(2);
    nobody_blames();
    all_start(4);
    calls(1, 11);
    pass(1);
    cr_assert_eq(members[1].fault.code, ERR_CONFIG);
    cr_assert_eq(members[0].fault.code, ERR_CONFIG);
}

Test(watch, calls_that_are_equal)
{
    group_open(3);
    all_start(4);
    for (int i = 0; i < size; i++)
        calls(i, 10);
    pass(TIMEOUT);
    nobody_blames();
    cr_assert_eq(members[0].sent[WATCH_CALL], 2, "each neighbour once");
}

Test(watch, digests_of_calls)
{
    comm_request_t request = {.count = 10};
    watch_call_t one, other;

    group_open(2);
    one = watch_call_of(&request, 1, false);
    other = watch_call_of(&request, 1, true);
    cr_assert_neq(watch_begin(members[0].watch, &one, now),
                  watch_begin(members[1].watch, &other, now));
    cr_assert_eq(watch_begin(members[0].watch, &one, now) >> WATCH_DIGEST_BITS,
                 0);
}

/* ---- notes --------------------------------------------------------------- */

/* All ranks of a large group learn of a fault, although each rank tells only a
 * few others and some ranks have died. */
Test(watch, news_in_a_large_group)
{
    group_open(64);
    all_start(1);
    pass(1);
    for (int i = 8; i < 64; i += 8)
        members[i].dead = true;
    watch_lost(members[5].watch, 8, now);
    cr_assert(watch_is_neighbour(members[5].watch, 4));
    cr_assert_not(watch_is_neighbour(members[5].watch, 8));
    pass(2);
    all_blame(8, "died or lost its connection");
}

Test(watch, neighbours_are_mutual)
{
    for (int ranks = 2; ranks <= RANKS_MOST; ranks += ranks < 34 ? 1 : 5) {
        group_open(ranks);
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                cr_assert_eq(watch_is_neighbour(members[i].watch, j),
                             watch_is_neighbour(members[j].watch, i));
        group_close();
    }
}

/* Only one note is sent at a time; waiting notes are sent in order of
 * importance. */
Test(watch, one_note_at_a_time)
{
    err_t fault = ERR_INIT;

    group_open(2);
    members[0].slow = true;
    pass(5);
    cr_assert_eq(members[0].sent[WATCH_BEAT], 1);
    cr_assert(watch_is_sending(members[0].watch));
    err_set(&fault, ERR_CONFIG, "something is wrong");
    members[0].told = true;
    watch_tell(members[0].watch, &fault);
    watch_leave(members[0].watch);
    cr_assert_not(watch_has_told(members[0].watch));
    watch_sent(members[0].watch, 1);
    cr_assert(watch_has_notes(members[0].watch));
    watch_send(members[0].watch);
    cr_assert_eq(members[0].sent[WATCH_FAULT], 1);
    cr_assert_eq(members[0].sent[WATCH_BYE], 0);
    watch_sent(members[0].watch, 1);
    watch_send(members[0].watch);
    cr_assert_eq(members[0].sent[WATCH_BYE], 1);
    cr_assert_eq(members[0].sent[WATCH_BEAT], 1);
    pass(1);
    cr_assert_str_eq(members[1].fault.text, "something is wrong");
}

/* Ranks that are connected but not neighbours receive good-byes and no beats.
 */
Test(watch, connections_hear_good_byes)
{
    group_open(64);
    watch_connected(members[0].watch, 3);
    pass(2);
    watch_leave(members[0].watch);
    mails = 0;
    watch_send(members[0].watch);
    for (int i = 0; i < mails; i++)
        if (mail[i].to == 3)
            return;
    cr_assert_fail("rank 3 is not told");
}

/* Whatever bytes a note has, only the watch's own memory is read. */
Test(watch, notes_of_any_bytes)
{
    watch_note_t note;

    group_open(3);
    memset(&note, 0x7f, sizeof note);
    watch_hear(members[0].watch, &note, now);
    note.from = -5;
    watch_hear(members[0].watch, &note, now);
    for (int kind = 0; kind <= WATCH_KINDS; kind++) {
        memset(&note, 0x7f, sizeof note);
        note.from = 1;
        note.kind = kind;
        note.beat.waiting = false;
        if (kind != WATCH_FAULT)
            watch_hear(members[0].watch, &note, now);
    }
    members[1].dead = true;
    pass(2 * TIMEOUT);
    cr_assert_eq(members[0].fault.culprit, 101);
}
